package smbserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// onBoth runs a test over a tree in memory and over one on disk, each with the
// files given.
func onBoth(t *testing.T, files []string, test func(t *testing.T, c *client, read func(path string) string)) {
	t.Run("memory", func(t *testing.T) {
		fs := newFS(t, memfsConfig, files...)
		c := logOn(t, start(t, Config{Shares: []Share{{Name: "share", Tree: Memory(fs)}}}))
		test(t, c, func(path string) string {
			data, err := fs.ReadFile(path)
			if err != nil {
				return err.Error()
			}
			return string(data)
		})
	})
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		for _, path := range files {
			full := filepath.Join(dir, filepath.FromSlash(path))
			if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(full, []byte("contents of "+path), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		folder, err := OpenFolder(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { folder.Close() })
		c := logOn(t, start(t, Config{Shares: []Share{{Name: "share", Tree: folder}}}))
		test(t, c, func(path string) string {
			data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
			if err != nil {
				return "no such file or directory"
			}
			return string(data)
		})
	})
}

func TestDispositions(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, c *client, contents func(string) string) {
		const none = ^smb2msg.CreateAction(0)
		for d, want := range map[smb2msg.CreateDisposition]struct {
			there, missing smb2msg.CreateAction
			empties        bool
		}{
			smb2msg.Supersede:   {smb2msg.ActionSuperseded, smb2msg.ActionCreated, true},
			smb2msg.Open:        {smb2msg.ActionOpened, none, false},
			smb2msg.Create:      {none, smb2msg.ActionCreated, false},
			smb2msg.OpenIf:      {smb2msg.ActionOpened, smb2msg.ActionCreated, false},
			smb2msg.Overwrite:   {smb2msg.ActionOverwritten, none, true},
			smb2msg.OverwriteIf: {smb2msg.ActionOverwritten, smb2msg.ActionCreated, true},
		} {
			there, missing := fmt.Sprintf("there%d", d), fmt.Sprintf("missing%d", d)
			id := c.open(there)
			c.write(id, 0, "data")
			c.close(id)
			for name, want := range map[string]smb2msg.CreateAction{there: want.there, missing: want.missing} {
				m := opening(name)
				m.CreateDisposition = d
				r := c.do(smb2msg.CommandCreate, m)
				got := none
				if r.Status == ntstatus.Success {
					var resp smb2msg.CreateResponse
					c.body(r, &resp)
					got = resp.CreateAction
					c.close(resp.FileID)
				}
				if got != want {
					t.Errorf("disposition %d of %s: action %d, want %d (%v)", d, name, int32(got), int32(want), r.Status)
				}
			}
			if got := contents(there); got == "data" == want.empties {
				t.Errorf("disposition %d leaves %q", d, got)
			}
		}
	})
}

func TestCreate(t *testing.T) {
	files := []string{"file", "dir/sub/deep", "dir/Größe"}
	onBoth(t, files, func(t *testing.T, c *client, _ func(string) string) {
		long := strings.Repeat("x", 255)
		for _, tc := range []struct {
			name   string
			change func(*smb2msg.CreateRequest)
			want   ntstatus.Status
		}{
			{"file", nil, ntstatus.Success},
			{"FILE", nil, ntstatus.Success},
			{`dir\gRÖßE`, nil, ntstatus.Success},
			{"", nil, ntstatus.Success},
			{"none", nil, ntstatus.ObjectNameNotFound},
			{`none\file`, nil, ntstatus.ObjectPathNotFound},
			{`file\file`, nil, ntstatus.ObjectPathNotFound},
			{`\file`, nil, ntstatus.InvalidParameter},
			{`dir\`, nil, ntstatus.ObjectNameInvalid},
			{`dir\\sub`, nil, ntstatus.ObjectNameInvalid},
			{`dir\..\file`, nil, ntstatus.ObjectNameInvalid},
			{"a/b", nil, ntstatus.ObjectNameInvalid},
			{"a*", nil, ntstatus.ObjectNameInvalid},
			{"file:stream", nil, ntstatus.ObjectNameInvalid},
			{"tab\t", nil, ntstatus.ObjectNameInvalid},
			{long + "x", nil, ntstatus.ObjectNameInvalid},
			{long, nil, ntstatus.ObjectNameNotFound},
			{"trailing. ", func(m *smb2msg.CreateRequest) { m.CreateDisposition = smb2msg.OpenIf }, ntstatus.Success},
			{"file", func(m *smb2msg.CreateRequest) { m.CreateOptions = smb2msg.OptionDirectoryFile }, ntstatus.NotADirectory},
			{"dir", func(m *smb2msg.CreateRequest) { m.CreateOptions = smb2msg.OptionNonDirectoryFile }, ntstatus.FileIsADirectory},
			{"dir", func(m *smb2msg.CreateRequest) { m.CreateDisposition = smb2msg.OverwriteIf }, ntstatus.ObjectNameCollision},
			{"new", func(m *smb2msg.CreateRequest) {
				m.CreateDisposition, m.CreateOptions = smb2msg.Create, smb2msg.OptionDirectoryFile
			}, ntstatus.Success},
			{"new", func(m *smb2msg.CreateRequest) {
				m.CreateDisposition, m.CreateOptions = smb2msg.Overwrite, smb2msg.OptionDirectoryFile
			}, ntstatus.InvalidParameter},
			{"file", func(m *smb2msg.CreateRequest) {
				m.CreateOptions = smb2msg.OptionDirectoryFile | smb2msg.OptionNonDirectoryFile
			}, ntstatus.InvalidParameter},
			{"file", func(m *smb2msg.CreateRequest) { m.CreateDisposition = 6 }, ntstatus.InvalidParameter},
			{"file", func(m *smb2msg.CreateRequest) { m.DesiredAccess = 0 }, ntstatus.AccessDenied},
			{"file", func(m *smb2msg.CreateRequest) { m.ShareAccess = 8 }, ntstatus.InvalidParameter},
			{"file", func(m *smb2msg.CreateRequest) {
				m.CreateOptions, m.DesiredAccess = smb2msg.OptionDeleteOnClose, smb2msg.AccessReadData
			}, ntstatus.InvalidParameter},
			{"", func(m *smb2msg.CreateRequest) { m.CreateOptions = smb2msg.OptionDeleteOnClose }, ntstatus.CannotDelete},
		} {
			m := opening(tc.name)
			if tc.change != nil {
				tc.change(m)
			}
			r := c.do(smb2msg.CommandCreate, m)
			if r.Status != tc.want {
				t.Errorf("%q, %+v: %v, want %v", tc.name, m, r.Status, tc.want)
			}
			if r.Status == ntstatus.Success {
				var resp smb2msg.CreateResponse
				c.body(r, &resp)
				c.close(resp.FileID)
			}
		}
	})
}

func TestCreateContexts(t *testing.T) {
	c := logOn(t, start(t, Config{}, "file"))
	m := opening("file")
	m.Contexts = []smb2msg.CreateContext{
		smb2msg.NewCreateContext(smb2msg.ContextMxAc, nil),
		smb2msg.NewCreateContext(smb2msg.ContextDHnQ, &smb2msg.DurableHandleRequest{}),
		smb2msg.NewCreateContext(smb2msg.ContextQFid, nil),
	}
	r := c.do(smb2msg.CommandCreate, m)
	var resp smb2msg.CreateResponse
	c.body(r, &resp)
	if len(resp.Contexts) != 2 {
		t.Fatalf("got contexts %v, want MxAc and QFid", resp.Contexts)
	}
	var access smb2msg.QueryMaximalAccessResponse
	rd, _ := smb2msg.FindContext(resp.Contexts, smb2msg.ContextMxAc)
	if err := access.Decode(&rd); err != nil || access.QueryStatus != 0 || access.MaximalAccess != accessAll {
		t.Errorf("maximal access %+v, %v", access, err)
	}
	var id smb2msg.QueryOnDiskIDResponse
	rd, _ = smb2msg.FindContext(resp.Contexts, smb2msg.ContextQFid)
	var internal fscc.FileInternalInformation
	c.query(resp.FileID, smb2msg.InfoFile, fscc.ClassFileInternal, &internal)
	if err := id.Decode(&rd); err != nil || id.DiskFileID == 0 || id.DiskFileID != internal.IndexNumber {
		t.Errorf("id on disk %+v, %v; want %d", id, err, internal.IndexNumber)
	}
}

func TestShareModes(t *testing.T) {
	s := start(t, Config{}, "file")
	c := logOn(t, s)
	const r, w, d = smb2msg.AccessReadData, smb2msg.AccessWriteData, smb2msg.AccessDelete
	const R, W, D = smb2msg.ShareRead, smb2msg.ShareWrite, smb2msg.ShareDelete
	for _, tc := range []struct {
		access1 smb2msg.AccessMask
		share1  smb2msg.ShareAccess
		access2 smb2msg.AccessMask
		share2  smb2msg.ShareAccess
		want    ntstatus.Status
	}{
		{r, R, r, R, ntstatus.Success},
		{r, 0, r, R, ntstatus.SharingViolation},
		{r, R, r, 0, ntstatus.SharingViolation},
		{r, R, w, R, ntstatus.SharingViolation},
		{r, R | W, w, R, ntstatus.Success},
		{w, R | W, w, R, ntstatus.SharingViolation},
		{w, R | W, w, W, ntstatus.Success},
		{r, R | W, r | d, R, ntstatus.SharingViolation},
		{d, R | W | D, d, D, ntstatus.Success},
		{r, 0, smb2msg.AccessReadAttributes, 0, ntstatus.Success},
		{smb2msg.AccessReadAttributes | smb2msg.AccessSynchronize, 0, w, 0, ntstatus.Success},
	} {
		m := opening("file")
		m.DesiredAccess, m.ShareAccess = tc.access1, tc.share1
		id := c.create(m)
		m.DesiredAccess, m.ShareAccess = tc.access2, tc.share2
		resp := c.do(smb2msg.CommandCreate, m)
		if resp.Status != tc.want {
			t.Errorf("%+v: %v", tc, resp.Status)
		}
		if resp.Status == ntstatus.Success {
			var opened smb2msg.CreateResponse
			c.body(resp, &opened)
			c.close(opened.FileID)
		}
		c.close(id)
	}
}

func TestDelete(t *testing.T) {
	onBoth(t, []string{"file", "dir/file", "a"}, func(t *testing.T, c *client, contents func(string) string) {
		dispose := func(name string) (smb2msg.FileID, ntstatus.Status) {
			id := c.open(name)
			return id, c.set(id, fscc.ClassFileDisposition, &fscc.FileDispositionInformation{DeletePending: true})
		}
		other := c.open("file")
		id, status := dispose("file")
		if status != ntstatus.Success {
			t.Fatalf("disposition: %v", status)
		}
		var standard fscc.FileStandardInformation
		c.query(other, smb2msg.InfoFile, fscc.ClassFileStandard, &standard)
		if !standard.DeletePending {
			t.Error("another open does not see that the file will go")
		}
		if r := c.do(smb2msg.CommandCreate, opening("file")); r.Status != ntstatus.DeletePending {
			t.Errorf("CREATE: %v, want DELETE_PENDING", r.Status)
		}
		c.close(id)
		if got := contents("file"); got != "contents of file" {
			t.Errorf("after the first close: %q", got)
		}
		c.close(other)
		if got := contents("file"); got != "no such file or directory" {
			t.Errorf("after the last close: %q", got)
		}
		if id, got := dispose("dir"); got != ntstatus.DirectoryNotEmpty {
			t.Errorf("removing a full folder: %v", got)
		} else {
			c.close(id)
		}
		if id, got := dispose(""); got != ntstatus.CannotDelete {
			t.Errorf("removing the root: %v", got)
		} else {
			c.close(id)
		}
		m := opening("a")
		m.CreateOptions = smb2msg.OptionDeleteOnClose
		c.close(c.create(m))
		if got := contents("a"); got != "no such file or directory" {
			t.Errorf("after DELETE_ON_CLOSE: %q", got)
		}
		readonly := c.open("ro")
		c.set(readonly, fscc.ClassFileBasic, &fscc.FileBasicInformation{FileAttributes: fscc.AttributeReadonly})
		if got := c.set(readonly, fscc.ClassFileDisposition, &fscc.FileDispositionInformation{DeletePending: true}); got != ntstatus.CannotDelete {
			t.Errorf("removing what is read-only: %v, want CANNOT_DELETE", got)
		}
		if got := c.set(readonly, fscc.ClassFileDispositionEx, &fscc.FileDispositionInformationEx{
			Flags: fscc.DispositionDelete | fscc.DispositionIgnoreReadonlyAttribute,
		}); got != ntstatus.Success {
			t.Errorf("removing it anyway: %v", got)
		}
	})
}

func TestRename(t *testing.T) {
	files := []string{"file", "dir/file", "dir/other", "open"}
	onBoth(t, files, func(t *testing.T, c *client, contents func(string) string) {
		keep := c.open("open")
		rename := func(from, to string, replace bool) ntstatus.Status {
			id := c.open(from)
			defer c.close(id)
			return c.set(id, fscc.ClassFileRename, &fscc.FileRenameInformation{ReplaceIfExists: replace, FileName: to})
		}
		for _, tc := range []struct {
			from, to string
			replace  bool
			want     ntstatus.Status
		}{
			{"file", `dir\file`, false, ntstatus.ObjectNameCollision},
			{"file", `none\file`, false, ntstatus.ObjectPathNotFound},
			{"file", "a*b", false, ntstatus.ObjectNameInvalid},
			{"file", "", false, ntstatus.InvalidParameter},
			{"file", "open", true, ntstatus.AccessDenied},
			{"file", "dir", true, ntstatus.AccessDenied},
			{"", "x", false, ntstatus.AccessDenied},
			{"file", "FILE", false, ntstatus.Success},
			{"file", `dir\file`, true, ntstatus.Success},
			{"dir", "Dir2", false, ntstatus.Success},
		} {
			if got := rename(tc.from, tc.to, tc.replace); got != tc.want {
				t.Errorf("%q to %q, replace %v: %v, want %v", tc.from, tc.to, tc.replace, got, tc.want)
			}
		}
		if got := contents("Dir2/file"); got != "contents of file" {
			t.Errorf("Dir2/file has %q", got)
		}
		below := c.open(`dir2\other`)
		if got := rename("dir2", "dir3", false); got != ntstatus.AccessDenied {
			t.Errorf("renaming a folder with something open below: %v, want ACCESS_DENIED", got)
		}
		// An open follows the file it has.
		if got := c.set(below, fscc.ClassFileRename, &fscc.FileRenameInformation{FileName: "moved"}); got != ntstatus.Success {
			t.Fatal(got)
		}
		var all fscc.FileAllInformation
		c.query(below, smb2msg.InfoFile, fscc.ClassFileAll, &all)
		if all.Name.FileName != `\moved` {
			t.Errorf("its name is %q", all.Name.FileName)
		}
		if got, status := c.read(below, 0, 100); string(got) != "contents of dir/other" {
			t.Errorf("READ after a rename: %q, %v", got, status)
		}
		if got := c.set(below, fscc.ClassFileLink, &fscc.FileLinkInformation{FileName: "second"}); got != ntstatus.Success {
			t.Errorf("link: %v", got)
		}
		c.query(below, smb2msg.InfoFile, fscc.ClassFileAll, &all)
		if got := contents("second"); all.Standard.NumberOfLinks != 2 || got != "contents of dir/other" {
			t.Errorf("after linking: %d links, %q", all.Standard.NumberOfLinks, got)
		}
		c.close(keep)
	})
}

func TestInfo(t *testing.T) {
	onBoth(t, []string{"dir/file"}, func(t *testing.T, c *client, contents func(string) string) {
		id := c.open(`dir\FILE`)
		written := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
		if got := c.set(id, fscc.ClassFileBasic, &fscc.FileBasicInformation{
			LastWriteTime: fscc.FiletimeOf(written), LastAccessTime: fscc.FiletimeFreeze, FileAttributes: fscc.AttributeReadonly,
		}); got != ntstatus.Success {
			t.Fatal(got)
		}
		var all fscc.FileAllInformation
		if got := c.query(id, smb2msg.InfoFile, fscc.ClassFileAll, &all); got != ntstatus.Success {
			t.Fatal(got)
		}
		if !all.Basic.LastWriteTime.Time().Equal(written) || all.Basic.FileAttributes&fscc.AttributeReadonly == 0 ||
			all.Standard.EndOfFile != 20 || all.Name.FileName != `\dir\file` || all.Standard.Directory {
			t.Errorf("got %+v", all)
		}
		var network fscc.FileNetworkOpenInformation
		if got := c.query(id, smb2msg.InfoFile, fscc.ClassFileNetworkOpen, &network); got != ntstatus.Success || network.EndOfFile != 20 {
			t.Errorf("network open information: %+v, %v", network, got)
		}
		c.set(id, fscc.ClassFileBasic, &fscc.FileBasicInformation{FileAttributes: fscc.AttributeNormal})
		for _, tc := range []struct {
			class fscc.Class
			m     appender
			size  uint64
		}{
			{fscc.ClassFileEndOfFile, &fscc.FileEndOfFileInformation{EndOfFile: 10}, 10},
			{fscc.ClassFileAllocation, &fscc.FileAllocationInformation{AllocationSize: 1 << 20}, 10},
			{fscc.ClassFileAllocation, &fscc.FileAllocationInformation{AllocationSize: 4}, 4},
			{fscc.ClassFileEndOfFile, &fscc.FileEndOfFileInformation{EndOfFile: 1 << 30}, 1 << 30},
		} {
			if got := c.set(id, tc.class, tc.m); got != ntstatus.Success {
				t.Errorf("class %d: %v", tc.class, got)
			}
			c.query(id, smb2msg.InfoFile, fscc.ClassFileNetworkOpen, &network)
			if network.EndOfFile != tc.size {
				t.Errorf("class %d, %+v: size %d, want %d", tc.class, tc.m, network.EndOfFile, tc.size)
			}
		}
		if network.AllocationSize > 1<<20 {
			t.Errorf("a hole has %d bytes allocated", network.AllocationSize)
		}
		var streams fscc.FileStreamInformation
		if got := c.query(id, smb2msg.InfoFile, fscc.ClassFileStream, &streams); got != ntstatus.Success || len(streams) != 1 || streams[0].StreamName != "::$DATA" {
			t.Errorf("streams: %v, %v", streams, got)
		}
		var size fscc.FileFsFullSizeInformation
		if got := c.query(id, smb2msg.InfoFilesystem, fscc.ClassFileFsFullSize, &size); got != ntstatus.Success || size.TotalAllocationUnits == 0 {
			t.Errorf("size: %+v, %v", size, got)
		}
		var fs fscc.FileFsAttributeInformation
		if got := c.query(id, smb2msg.InfoFilesystem, fscc.ClassFileFsAttribute, &fs); got != ntstatus.Success || fs.MaximumComponentNameLength != 255 {
			t.Errorf("file system: %+v, %v", fs, got)
		}
		for _, class := range []fscc.Class{fscc.ClassFileFsVolume, fscc.ClassFileFsSize, fscc.ClassFileFsDevice, fscc.ClassFileFsSectorSize} {
			r := c.do(smb2msg.CommandQueryInfo, &smb2msg.QueryInfoRequest{
				InfoType: smb2msg.InfoFilesystem, FileInfoClass: class, FileID: id, OutputBufferLength: 100,
			})
			if r.Status != ntstatus.Success {
				t.Errorf("volume class %d: %v", class, r.Status)
			}
		}
		// Too small for the fixed part, for the name, and for neither.
		for length, want := range map[uint32]ntstatus.Status{99: ntstatus.InfoLengthMismatch, 104: ntstatus.BufferOverflow, 200: ntstatus.Success} {
			r := c.do(smb2msg.CommandQueryInfo, &smb2msg.QueryInfoRequest{
				InfoType: smb2msg.InfoFile, FileInfoClass: fscc.ClassFileAll, FileID: id, OutputBufferLength: length,
			})
			if r.Status != want {
				t.Errorf("all information in %d bytes: %v, want %v", length, r.Status, want)
			}
		}
		if r := c.do(smb2msg.CommandQueryInfo, &smb2msg.QueryInfoRequest{InfoType: smb2msg.InfoSecurity, FileID: id}); r.Status != ntstatus.BufferTooSmall {
			t.Errorf("security in no bytes: %v", r.Status)
		} else {
			var e smb2msg.ErrorResponse
			c.body(r, &e)
			if n, ok := e.RequiredLength(); !ok || n != 20 {
				t.Errorf("says that %d bytes are needed, want 20", n)
			}
		}
	})
}

func (c *client) list(id smb2msg.FileID, class fscc.Class, flags uint8, pattern string, size uint32) ([]fscc.DirEntry, ntstatus.Status) {
	c.t.Helper()
	r := c.do(smb2msg.CommandQueryDirectory, &smb2msg.QueryDirectoryRequest{
		FileInformationClass: class, Flags: flags, FileID: id, OutputBufferLength: size, FileName: pattern,
	})
	if r.Status != ntstatus.Success {
		return nil, r.Status
	}
	var resp smb2msg.QueryDirectoryResponse
	c.body(r, &resp)
	if len(resp.Output) > int(size) {
		c.t.Errorf("%d bytes of entries for %d", len(resp.Output), size)
	}
	var entries []fscc.DirEntry
	d := fscc.NewDirReader(class, resp.Output)
	for e := (fscc.DirEntry{}); d.Next(&e); {
		entries = append(entries, e)
	}
	if err := d.Err(); err != nil {
		c.t.Fatal(err)
	}
	return entries, r.Status
}

func TestQueryDirectory(t *testing.T) {
	var files []string
	for i := range 100 {
		files = append(files, fmt.Sprintf("dir/File%02d.txt", i))
	}
	onBoth(t, files, func(t *testing.T, c *client, _ func(string) string) {
		id := c.open("dir")
		for _, class := range []fscc.Class{
			fscc.ClassFileDirectory, fscc.ClassFileFullDirectory, fscc.ClassFileBothDirectory, fscc.ClassFileNames,
			fscc.ClassFileIDBothDirectory, fscc.ClassFileIDFullDirectory, fscc.ClassFileIDExtdDirectory,
		} {
			seen := map[string]bool{}
			flags := smb2msg.QueryDirectoryRestartScans
			for pages := 0; ; pages++ {
				entries, status := c.list(id, class, flags, "*", 1000)
				flags = 0
				if status == ntstatus.NoMoreFiles {
					if pages < 3 {
						t.Errorf("class %d: all in %d pages", class, pages)
					}
					break
				}
				if status != ntstatus.Success {
					t.Fatalf("class %d: %v", class, status)
				}
				for _, e := range entries {
					if seen[e.FileName] {
						t.Errorf("class %d: %s twice", class, e.FileName)
					}
					seen[e.FileName] = true
					if e.FileName == "File07.txt" && class != fscc.ClassFileNames && e.EndOfFile != uint64(len("contents of dir/File07.txt")) {
						t.Errorf("class %d: size %d", class, e.EndOfFile)
					}
				}
			}
			if len(seen) != 102 || !seen["."] || !seen[".."] {
				t.Errorf("class %d: %d entries, want 102", class, len(seen))
			}
		}
		const restart, single, index = smb2msg.QueryDirectoryRestartScans, smb2msg.QueryDirectoryReturnSingleEntry, smb2msg.QueryDirectoryIndexSpecified
		if entries, status := c.list(id, fscc.ClassFileNames, restart, "file?7.TXT", 65536); len(entries) != 10 {
			t.Errorf("file?7.TXT: %d entries, %v; want 10", len(entries), status)
		}
		if entries, status := c.list(id, fscc.ClassFileNames, restart|single, "file9*", 65536); len(entries) != 1 {
			t.Errorf("single: %d entries, %v", len(entries), status)
		}
		// The pattern stays that of the start.
		if entries, status := c.list(id, fscc.ClassFileNames, 0, "*", 65536); len(entries) != 9 {
			t.Errorf("after the single one: %d entries, %v; want 9", len(entries), status)
		}
		if _, status := c.list(id, fscc.ClassFileNames, restart, "none*", 65536); status != ntstatus.NoSuchFile {
			t.Errorf("no match: %v, want NO_SUCH_FILE", status)
		}
		if _, status := c.list(id, fscc.ClassFileNames, restart, "*", 10); status != ntstatus.InfoLengthMismatch {
			t.Errorf("no room: %v, want INFO_LENGTH_MISMATCH", status)
		}
		if _, status := c.list(id, fscc.ClassFileBasic, restart, "*", 65536); status != ntstatus.InvalidInfoClass {
			t.Errorf("wrong class: %v, want INVALID_INFO_CLASS", status)
		}
		if entries, status := c.list(id, fscc.ClassFileNames, restart, "*", 65536); len(entries) != 102 {
			t.Fatalf("all at once: %d, %v", len(entries), status)
		} else {
			r := c.do(smb2msg.CommandQueryDirectory, &smb2msg.QueryDirectoryRequest{
				FileInformationClass: fscc.ClassFileNames, Flags: index | single, FileIndex: entries[4].FileIndex,
				FileID: id, OutputBufferLength: 1000, FileName: "*",
			})
			var resp smb2msg.QueryDirectoryResponse
			c.body(r, &resp)
			var e fscc.DirEntry
			d := fscc.NewDirReader(fscc.ClassFileNames, resp.Output)
			if !d.Next(&e) || e.FileName != entries[5].FileName {
				t.Errorf("behind index %d: %q, want %q", entries[4].FileIndex, e.FileName, entries[5].FileName)
			}
		}
		if _, status := c.list(c.open(`dir\File01.txt`), fscc.ClassFileNames, 0, "*", 1000); status != ntstatus.InvalidParameter {
			t.Errorf("of a file: %v, want INVALID_PARAMETER", status)
		}
	})
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "a.b", true}, {"*.*", "a", false}, {"*.*", "a.b", true},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"a*c*e", "abcde", true}, {"a*c*e", "abcd", false},
		{"A*", "abc", true}, {"Ä", "ä", true}, {"?", "\U0001F600", true},
		{"<.txt", "a.b.txt", true}, {"<", "a.b", false}, {"<", "ab", true},
		{"a>>>", "a", true}, {"a>>>", "abcd", true}, {"a>>>", "abcde", false}, {">>>.c", "a.c", true},
		{`a"`, "a", true}, {`a"`, "a.", true}, {`a"b`, "a.b", true}, {`a"b`, "ab", false},
		{strings.Repeat("*a", 50), strings.Repeat("a", 49) + "b", false},
	} {
		if got := matches(c.pattern, c.name, true); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
	if matches("A", "a", false) {
		t.Error("A matches a where case matters")
	}
}

func TestSymlinks(t *testing.T) {
	onBoth(t, []string{"dir/file"}, func(t *testing.T, c *client, _ func(string) string) {
		link := func(name, target string, relative bool) {
			id := c.open(name)
			defer c.close(id)
			data := fscc.SymbolicLinkReparseData{SubstituteName: target, PrintName: target, Relative: relative}
			point := fscc.NewReparsePoint(fscc.ReparseTagSymlink, &data)
			r := c.do(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{
				CtlCode: smb2msg.FsctlSetReparsePoint, FileID: id, Input: point.Append(nil), Flags: smb2msg.IoctlIsFsctl,
			})
			if r.Status != ntstatus.Success {
				t.Fatalf("SET_REPARSE_POINT: %v", r.Status)
			}
		}
		link("rel", `dir\sub`, true)
		link("abs", `\??\C:\dir`, false)
		for _, tc := range []struct {
			path     string
			unparsed string
			target   string
			relative bool
		}{
			{"rel", "", `dir\sub`, true},
			{`rel\größe\x`, `\größe\x`, `dir\sub`, true},
			{"abs", "", `\??\C:\dir`, false},
		} {
			r := c.do(smb2msg.CommandCreate, opening(tc.path))
			var e smb2msg.ErrorResponse
			c.body(r, &e)
			s, err := e.Symlink()
			if r.Status != ntstatus.StoppedOnSymlink || err != nil || len(e.Contexts) != 1 ||
				int(s.UnparsedPathLength) != 2*len([]rune(tc.unparsed)) || s.SubstituteName != tc.target || s.Relative != tc.relative {
				t.Errorf("%s: %v, %+v, %v; want %+v", tc.path, r.Status, s, err, tc)
			}
		}
		m := opening("rel")
		m.CreateOptions = smb2msg.OptionOpenReparsePoint
		id := c.create(m)
		var tag fscc.FileAttributeTagInformation
		if c.query(id, smb2msg.InfoFile, fscc.ClassFileAttributeTag, &tag); tag.ReparseTag != fscc.ReparseTagSymlink {
			t.Errorf("tag of the link: %+v", tag)
		}
		r := c.do(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{
			CtlCode: smb2msg.FsctlGetReparsePoint, FileID: id, MaxOutputResponse: 1000, Flags: smb2msg.IoctlIsFsctl,
		})
		var resp smb2msg.IoctlResponse
		c.body(r, &resp)
		if !slices.Contains(strings.Split(string(resp.Output), "\x00"), "d") {
			t.Errorf("GET_REPARSE_POINT = %q", resp.Output)
		}
		c.close(id)
		entries, _ := c.list(c.open(""), fscc.ClassFileIDBothDirectory, 0, "rel", 1000)
		if len(entries) != 1 || entries[0].ReparseTag != fscc.ReparseTagSymlink || entries[0].FileAttributes&fscc.AttributeReparsePoint == 0 {
			t.Errorf("listed as %+v", entries)
		}
	})
}

// TestFolderKeepsIn follows links that lead out of a folder.
func TestFolderKeepsIn(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	folder, err := OpenFolder(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	out, _, err := folder.Root().Lookup("out")
	if err != nil {
		t.Fatal(err)
	}
	if child, _, err := out.Lookup("secret"); err == nil {
		t.Errorf("found %v outside", child)
	}
	if _, err := out.Create("new"); err == nil {
		t.Error("created a file outside")
	}
	if _, err := out.Open(true); err == nil {
		t.Error("opened what is outside")
	}
	if _, err := out.ReadDir(); err == nil {
		t.Error("listed what is outside")
	}
}

func TestReadOnlyShare(t *testing.T) {
	tree := Memory(newFS(t, memfs.Config{}, "file"))
	c := logOn(t, start(t, Config{Shares: []Share{{Name: "share", Tree: tree, ReadOnly: true}}}))
	id := c.open("file") // MAXIMUM_ALLOWED
	if got, status := c.read(id, 0, 8); string(got) != "contents" {
		t.Errorf("READ = %q, %v", got, status)
	}
	if got := c.write(id, 0, "x"); got != ntstatus.AccessDenied {
		t.Errorf("WRITE: %v, want ACCESS_DENIED", got)
	}
	m := opening("file")
	m.DesiredAccess = smb2msg.AccessGenericWrite
	if r := c.do(smb2msg.CommandCreate, m); r.Status != ntstatus.AccessDenied {
		t.Errorf("CREATE for writing: %v, want ACCESS_DENIED", r.Status)
	}
	m = opening("new")
	m.CreateDisposition = smb2msg.OpenIf
	if r := c.do(smb2msg.CommandCreate, m); r.Status != ntstatus.AccessDenied {
		t.Errorf("CREATE of something new: %v, want ACCESS_DENIED", r.Status)
	}
}

func TestData(t *testing.T) {
	fs := newFS(t, memfs.Config{Limit: 64 << 10}, "file")
	c := logOn(t, start(t, Config{Shares: []Share{{Name: "share", Tree: Memory(fs)}}}))
	id := c.open("file")
	if _, got := c.read(id, 16, 1); got != ntstatus.EndOfFile {
		t.Errorf("READ at the end: %v, want END_OF_FILE", got)
	}
	if got, status := c.read(id, 12, 100); string(got) != "file" {
		t.Errorf("READ over the end = %q, %v", got, status)
	}
	if r := c.do(smb2msg.CommandRead, &smb2msg.ReadRequest{FileID: id, Length: 100, MinimumCount: 50}); r.Status != ntstatus.EndOfFile {
		t.Errorf("READ of at least 50: %v, want END_OF_FILE", r.Status)
	}
	if _, got := c.read(id, 1<<63-1, 1); got != ntstatus.InvalidParameter {
		t.Errorf("READ beyond all files: %v, want INVALID_PARAMETER", got)
	}
	if got := c.write(id, 70000, strings.Repeat("x", 65536)); got != ntstatus.DiskFull {
		t.Errorf("WRITE of too much: %v, want DISK_FULL", got)
	}
	if _, got := c.read(smb2msg.FileID{Persistent: 99, Volatile: 99}, 0, 1); got != ntstatus.FileClosed {
		t.Errorf("READ of no file: %v, want FILE_CLOSED", got)
	}
	m := opening("file")
	m.DesiredAccess = smb2msg.AccessReadData
	reader := c.create(m)
	if got := c.write(reader, 0, "x"); got != ntstatus.AccessDenied {
		t.Errorf("WRITE to what is open for reading: %v, want ACCESS_DENIED", got)
	}
	if got := c.do(smb2msg.CommandFlush, &smb2msg.FlushRequest{FileID: id}).Status; got != ntstatus.Success {
		t.Errorf("FLUSH: %v", got)
	}
	zero := number{2, 0, 4, 0}
	if got := c.do(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{
		CtlCode: smb2msg.FsctlSetZeroData, FileID: id, Input: zero.Append(nil), Flags: smb2msg.IoctlIsFsctl,
	}).Status; got != ntstatus.Success {
		t.Errorf("SET_ZERO_DATA: %v", got)
	}
	if got, _ := c.read(id, 0, 6); string(got) != "co\x00\x00en" {
		t.Errorf("after SET_ZERO_DATA: %q", got)
	}
	r := c.do(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{
		CtlCode: smb2msg.FsctlSrvRequestResumeKey, FileID: id, MaxOutputResponse: 32, Flags: smb2msg.IoctlIsFsctl,
	})
	var resp smb2msg.IoctlResponse
	c.body(r, &resp)
	copying := smb2msg.CopychunkRequest{
		SourceKey: smb2msg.ResumeKey(resp.Output[:24]),
		Chunks:    []smb2msg.Copychunk{{SourceOffset: 4, TargetOffset: 1, Length: 4}, {SourceOffset: 0, TargetOffset: 5, Length: 2}},
	}
	to := c.open("copy")
	if got := c.do(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{
		CtlCode: smb2msg.FsctlSrvCopychunk, FileID: to, Input: copying.Append(nil), MaxOutputResponse: 12, Flags: smb2msg.IoctlIsFsctl,
	}).Status; got != ntstatus.Success {
		t.Errorf("COPYCHUNK: %v", got)
	}
	if got, _ := c.read(to, 0, 100); string(got) != "\x00entsco" {
		t.Errorf("copied %q", got)
	}
}

func TestLock(t *testing.T) {
	s := start(t, Config{}, "file")
	a, b := logOn(t, s), logOn(t, s)
	ida, idb := a.open("file"), b.open("file")
	lock := func(c *client, id smb2msg.FileID, locks ...smb2msg.LockElement) ntstatus.Status {
		return c.do(smb2msg.CommandLock, &smb2msg.LockRequest{FileID: id, Locks: locks}).Status
	}
	const now = smb2msg.LockFailImmediately
	first := smb2msg.LockElement{Offset: 0, Length: 4, Flags: smb2msg.LockExclusive | now}
	behind := smb2msg.LockElement{Offset: 4, Length: 4, Flags: smb2msg.LockShared | now}
	unlock := smb2msg.LockElement{Offset: 0, Length: 4, Flags: smb2msg.LockUnlock}
	for _, step := range []struct {
		what string
		got  ntstatus.Status
		want ntstatus.Status
	}{
		{"lock", lock(a, ida, first, behind), ntstatus.Success},
		{"the same by another", lock(b, idb, first), ntstatus.LockNotGranted},
		{"a shared one", lock(b, idb, behind), ntstatus.Success},
		{"one that fits and one that does not", lock(b, idb, smb2msg.LockElement{Offset: 100, Length: 1, Flags: smb2msg.LockShared | now}, first), ntstatus.LockNotGranted},
		{"what was undone", lock(b, idb, smb2msg.LockElement{Offset: 100, Length: 1, Flags: smb2msg.LockUnlock}), ntstatus.RangeNotLocked},
		{"write by the owner", a.write(ida, 0, "x"), ntstatus.Success},
		{"write by another", b.write(idb, 0, "x"), ntstatus.FileLockConflict},
		{"write where it is shared", a.write(ida, 4, "x"), ntstatus.FileLockConflict},
		{"unlock", lock(a, ida, unlock), ntstatus.Success},
		{"unlock again", lock(a, ida, unlock), ntstatus.RangeNotLocked},
		{"write afterwards", b.write(idb, 0, "x"), ntstatus.Success},
		{"no kind of lock", lock(a, ida, smb2msg.LockElement{Length: 1, Flags: 3}), ntstatus.InvalidParameter},
		{"close", a.close(ida), ntstatus.Success},
		{"close", b.close(idb), ntstatus.Success},
	} {
		if step.got != step.want {
			t.Errorf("%s: %v, want %v", step.what, step.got, step.want)
		}
	}
}
