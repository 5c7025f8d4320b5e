package smbserver

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// raw is a body that is just bytes.
type raw []byte

func (b raw) Append(to []byte) []byte { return append(to, b...) }

// FuzzRequests sends bodies that make little sense to a server that knows the
// client, and requires that each is answered or ends the connection.
func FuzzRequests(f *testing.F) {
	id := smb2msg.FileID{Persistent: 3, Volatile: 3}
	for cmd, body := range map[smb2msg.Command]appender{
		smb2msg.CommandCreate:         opening(`dir\file`),
		smb2msg.CommandClose:          &smb2msg.CloseRequest{FileID: id},
		smb2msg.CommandRead:           &smb2msg.ReadRequest{FileID: id, Length: 10},
		smb2msg.CommandWrite:          &smb2msg.WriteRequest{FileID: id},
		smb2msg.CommandLock:           &smb2msg.LockRequest{FileID: id, Locks: []smb2msg.LockElement{{Length: 1, Flags: 2}}},
		smb2msg.CommandIoctl:          &smb2msg.IoctlRequest{FileID: id, Flags: 1, CtlCode: smb2msg.FsctlSrvCopychunk, Input: make([]byte, 64)},
		smb2msg.CommandQueryDirectory: &smb2msg.QueryDirectoryRequest{FileID: id, FileInformationClass: 37, FileName: "*<\"", OutputBufferLength: 500},
		smb2msg.CommandQueryInfo:      &smb2msg.QueryInfoRequest{FileID: id, InfoType: 1, FileInfoClass: 18, OutputBufferLength: 500},
		smb2msg.CommandSetInfo:        &smb2msg.SetInfoRequest{FileID: id, InfoType: 1, FileInfoClass: 10, Buffer: make([]byte, 24)},
		smb2msg.CommandSessionSetup:   &smb2msg.SessionSetupRequest{SecurityBuffer: []byte("NTLMSSP")},
		smb2msg.CommandTreeConnect:    &smb2msg.TreeConnectRequest{Path: `\\a\IPC$`},
		smb2msg.CommandChangeNotify:   &smb2msg.ChangeNotifyRequest{FileID: id},
		smb2msg.CommandOplockBreak:    &smb2msg.OplockBreak{FileID: id, OplockLevel: smb2msg.OplockII},
	} {
		f.Add(uint16(cmd), uint32(0), uint64(0), body.Append(make([]byte, smb2msg.HeaderSize))[smb2msg.HeaderSize:])
	}
	for _, body := range []appender{
		leasing(`dir\file`, 1, "RWH"), overwriting(`dir\file`), &smb2msg.LeaseBreak{LeaseKey: [16]byte{1}, LeaseState: leaseRead},
	} {
		cmd := smb2msg.CommandCreate
		if _, ok := body.(*smb2msg.LeaseBreak); ok {
			cmd = smb2msg.CommandOplockBreak
		}
		f.Add(uint16(cmd), uint32(0), uint64(0), body.Append(make([]byte, smb2msg.HeaderSize))[smb2msg.HeaderSize:])
	}
	f.Fuzz(func(t *testing.T, cmd uint16, flags uint32, mid uint64, body []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, Config{}, "dir/file")
			c := logOn(t, s)
			c.create(leasing(`dir\file`, 1, "RWH"))
			c.send(message{
				hdr:  smb2msg.Header{Command: smb2msg.Command(cmd), Flags: smb2msg.Flags(flags), MessageID: mid, Credits: 2},
				body: raw(body),
			}, echo(smb2msg.Header{}))
			synctest.Wait()
			s.CloseConnections()
			got, _ := io.ReadAll(c.br)
			if len(got) > 0 && len(got) < lengthSize+smb2msg.HeaderSize {
				t.Errorf("answered %x", got)
			}
		})
	})
}
