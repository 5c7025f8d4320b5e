package smbserver

import (
	"testing"

	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

func chained(cmd smb2msg.Command, body appender) message {
	return message{hdr: smb2msg.Header{Command: cmd, Flags: smb2msg.FlagRelated, Credits: 4}, body: body}
}

func statuses(replies []reply) (list []ntstatus.Status) {
	for _, r := range replies {
		list = append(list, r.Status)
	}
	return list
}

func wantStatuses(t *testing.T, replies []reply, want ...ntstatus.Status) {
	t.Helper()
	got := statuses(replies)
	if len(got) != len(want) {
		t.Fatalf("got %v in one frame, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestCompound(t *testing.T) {
	s := start(t, Config{}, "file", "dir/sub")
	c := logOn(t, s)
	create := func(name string) message {
		m := chained(smb2msg.CommandCreate, opening(name))
		m.hdr.Flags = 0
		return m
	}
	read := chained(smb2msg.CommandRead, &smb2msg.ReadRequest{FileID: smb2msg.RelatedFileID, Length: 60000})
	query := chained(smb2msg.CommandQueryInfo, &smb2msg.QueryInfoRequest{
		InfoType: smb2msg.InfoFile, FileInfoClass: fscc.ClassFileAll, FileID: smb2msg.RelatedFileID, OutputBufferLength: 1000,
	})
	closing := chained(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: smb2msg.RelatedFileID})

	for _, protect := range []string{"plain", "signed", "sealed"} {
		c.sign, c.seal = protect == "signed", protect == "sealed"
		c.send(create("file"), read, query, closing)
		replies := c.receive()
		wantStatuses(t, replies, 0, 0, 0, 0)
		var data smb2msg.ReadResponse
		c.body(replies[1], &data)
		if string(data.Data) != "contents of file" {
			t.Errorf("%s: READ = %q", protect, data.Data)
		}
		for i, r := range replies {
			if want := c.next - 4 + uint64(i); r.MessageID != want || (r.Flags&smb2msg.FlagSigned != 0) != c.sign {
				t.Errorf("%s: reply %d is for message %d with flags %v; want %d", protect, i, r.MessageID, r.Flags, want)
			}
		}
	}
	c.sign, c.seal = false, false

	// What fails to open fails all that needs it, and nothing stays open.
	c.send(create("none"), read, closing)
	wantStatuses(t, c.receive(), ntstatus.ObjectNameNotFound, ntstatus.ObjectNameNotFound, ntstatus.ObjectNameNotFound)

	// What fails otherwise fails alone.
	c.send(create("dir"), read, query, closing)
	wantStatuses(t, c.receive(), 0, ntstatus.InvalidDeviceRequest, 0, 0)

	// A related request has one before it.
	c.send(read)
	wantStatuses(t, c.receive(), ntstatus.InvalidParameter)

	// Unrelated requests have nothing to do with each other, not even the tree.
	id := c.open("file")
	unrelated := message{hdr: smb2msg.Header{Command: smb2msg.CommandClose}, body: &smb2msg.CloseRequest{FileID: id}}
	wrongTree := unrelated
	wrongTree.hdr.TreeID = 99
	c.send(create("none"), wrongTree, unrelated)
	wantStatuses(t, c.receive(), ntstatus.ObjectNameNotFound, ntstatus.NetworkNameDeleted, 0)

	// The last of a compound may wait, others may not.
	notify := chained(smb2msg.CommandChangeNotify, &smb2msg.ChangeNotifyRequest{FileID: smb2msg.RelatedFileID})
	c.send(create("dir"), notify, closing)
	wantStatuses(t, c.receive(), 0, ntstatus.Cancelled, 0)
	c.send(create("dir"), notify)
	replies := c.receive()
	wantStatuses(t, replies, 0, ntstatus.Pending)
	var opened smb2msg.CreateResponse
	c.body(replies[0], &opened)
	c.send(message{hdr: smb2msg.Header{Command: smb2msg.CommandClose}, body: &smb2msg.CloseRequest{FileID: opened.FileID}})
	got := append(c.receive(), c.receive()...)
	if got[0].Command == smb2msg.CommandClose {
		got[0], got[1] = got[1], got[0]
	}
	wantStatuses(t, got, ntstatus.NotifyCleanup, 0)
	if got[0].AsyncID != replies[1].AsyncID || got[0].AsyncID == 0 || got[0].Credits != 0 {
		t.Errorf("the end has AsyncId %d and %d credits, want %d and 0", got[0].AsyncID, got[0].Credits, replies[1].AsyncID)
	}
}

func TestCancel(t *testing.T) {
	for _, protect := range []string{"plain", "signed", "sealed"} {
		t.Run(protect, func(t *testing.T) {
			c := logOn(t, start(t, Config{}))
			c.sign, c.seal = protect == "signed", protect == "sealed"
			id := c.open("")
			notify := message{
				hdr:  smb2msg.Header{Command: smb2msg.CommandChangeNotify, Credits: 3},
				body: &smb2msg.ChangeNotifyRequest{FileID: id},
			}
			c.send(notify)
			interim := c.receive()[0]
			if interim.Status != ntstatus.Pending || interim.Flags&smb2msg.FlagAsync == 0 || interim.Credits != 3 {
				t.Fatalf("got %v with flags %#x and %d credits, want an interim reply with 3", interim.Status, interim.Flags, interim.Credits)
			}
			c.send(message{
				hdr:  smb2msg.Header{Command: smb2msg.CommandCancel, Flags: smb2msg.FlagAsync, AsyncID: interim.AsyncID},
				body: &smb2msg.CancelRequest{},
			})
			if r := c.receive()[0]; r.Status != ntstatus.Cancelled || r.MessageID != interim.MessageID {
				t.Errorf("got %v for %d, want CANCELLED for %d", r.Status, r.MessageID, interim.MessageID)
			}
			// A CANCEL right behind the request, before anybody had a look at it.
			for range 200 {
				id := c.next
				cancel := message{hdr: smb2msg.Header{Command: smb2msg.CommandCancel, MessageID: id}, body: &smb2msg.CancelRequest{}}
				frames := append(c.frame(notify), c.frame(cancel)...)
				if _, err := c.nc.Write(frames); err != nil {
					t.Fatal(err)
				}
				r := c.receive()[0]
				if r.Status == ntstatus.Pending {
					r = c.receive()[0]
				}
				if r.Status != ntstatus.Cancelled || r.MessageID != id {
					t.Fatalf("got %v for %d, want CANCELLED for %d", r.Status, r.MessageID, id)
				}
			}
			// What is not there is not cancelled.
			c.send(message{hdr: smb2msg.Header{Command: smb2msg.CommandCancel, MessageID: 5}, body: &smb2msg.CancelRequest{}})
			if r := c.do(smb2msg.CommandEcho, &smb2msg.EchoRequest{}); r.Status != ntstatus.Success {
				t.Errorf("ECHO: %v", r.Status)
			}
		})
	}
}
