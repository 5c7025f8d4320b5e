package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

const (
	smb1Folder   = "internal/smb/smb1msg/testdata/golden/"
	smb2Folder   = "internal/smb/smb2msg/testdata/golden/"
	fsccFolder   = "internal/smb/fscc/testdata/golden/"
	srvsvcFolder = "internal/smb/srvsvc/testdata/golden/"
)

// addConversation keeps what is new in a connection. The comments say who sent
// the requests and the replies.
func (g golden) addConversation(c *conversation, client, server string) {
	requests := map[string]message{} // by message id
	for _, f := range c.frames {
		who, kind := client, "request"
		if f.reply {
			who, kind = server, "response"
		}
		switch {
		case bytes.HasPrefix(f.data, []byte("\xffSMBr")):
			g.add(smb1Folder+"negotiate_"+kind+".hex", who, f.data)
		case bytes.HasPrefix(f.data, []byte("\xfdSMB")):
			g.add(smb2Folder+"transform_"+kind+".hex", who, f.data)
		case bytes.HasPrefix(f.data, []byte("\xfeSMB")):
			ms := split(f.data)
			if len(ms) > 1 {
				names := make([]string, len(ms))
				for i, m := range ms {
					names[i] = m.commandName()
				}
				g.add(smb2Folder+"compound_"+kind+"_"+strings.Join(names, "_")+".hex", who, f.data)
			}
			for _, m := range ms {
				if len(m) <= header {
					continue
				}
				if f.reply {
					g.addReply(m, requests[m.messageID()], who)
				} else {
					requests[m.messageID()] = m
					g.addRequest(m, who)
				}
			}
		}
	}
}

func (g golden) addRequest(m message, who string) {
	g.add(smb2Folder+join(m.commandName(), "request", m.variant()), who, m)
	if name, body := m.payload(nil); name != "" {
		g.addPayload(name, who, body)
	}
}

func (g golden) addReply(m, request message, who string) {
	if m.isError() {
		g.add(smb2Folder+join("error", "response", fmt.Sprintf("%08x", m.status())), who+", to "+m.commandName(), m)
		return
	}
	if m.command() == oplockBreak && m.messageID() == strings.Repeat("\xff", 8) {
		kind := ""
		if m.u16(header) == 44 {
			kind = "lease"
			if m.u16(header+2) > 0 { // it has an epoch
				kind = "lease2"
			}
		}
		g.add(smb2Folder+join("oplock_break", "notification", kind), who, m)
		return
	}
	g.add(smb2Folder+join(m.commandName(), "response", m.replyVariant(request)), who, m)
	if request == nil || m.status() != 0 { // a warning cuts the payload short
		return
	}
	if name, body := m.payload(request); name != "" {
		g.addPayload(name, who, body)
	}
}

func join(parts ...string) string {
	return strings.TrimSuffix(strings.Join(parts, "_"), "_") + ".hex"
}

// addPayload keeps an information class, or the RPC call a pipe carried.
func (g golden) addPayload(name, who string, b []byte) {
	if !strings.HasPrefix(name, "FSCTL_PIPE_TRANSCEIVE") {
		g.add(fsccFolder+name+".hex", who, b)
		return
	}
	// See [C706] 12.6: the type is at 2, a request's operation at 22.
	if len(b) < 24 {
		return
	}
	switch b[2] {
	case 0:
		g.add(srvsvcFolder+fmt.Sprintf("request_op%d.hex", b[22]), who, b)
	case 2:
		g.add(srvsvcFolder+"response.hex", who, b)
	case 3:
		g.add(srvsvcFolder+"fault.hex", who, b)
	case 11:
		g.add(srvsvcFolder+"bind.hex", who, b)
	case 12:
		g.add(srvsvcFolder+"bind_ack.hex", who, b)
	}
}

// version returns what a program says of its version.
func version(program string) string {
	out, _ := exec.Command(program, "--version").Output()
	fields := strings.Fields(string(out))
	if len(fields) == 0 {
		return "of unknown version"
	}
	return fields[len(fields)-1]
}
