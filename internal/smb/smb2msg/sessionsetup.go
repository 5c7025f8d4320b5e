package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// SessionBinding in a SessionSetupRequest adds a channel to a session.
const SessionBinding uint8 = 1

// SessionSetupRequest carries one leg of authentication. SecurityMode has one
// byte here. See [MS-SMB2] 2.2.5.
type SessionSetupRequest struct {
	Flags             uint8
	SecurityMode      SecurityMode
	Capabilities      Capabilities
	Channel           uint32
	PreviousSessionID uint64
	SecurityBuffer    []byte
}

const (
	sessionSetupRequestSize  = 25
	sessionSetupResponseSize = 9
)

func (m *SessionSetupRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, sessionSetupRequestSize)
	b = append(b, m.Flags, byte(m.SecurityMode))
	b = byteio.Append32(b, uint32(m.Capabilities))
	b = byteio.Append32(b, m.Channel)
	b = byteio.Append16(b, HeaderSize+sessionSetupRequestSize-1)
	b = byteio.Append16(b, uint16(len(m.SecurityBuffer)))
	b = byteio.Append64(b, m.PreviousSessionID)
	return appendBuffer(b, m.SecurityBuffer)
}

func (m *SessionSetupRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(sessionSetupRequestSize)
	m.Flags = d.Uint8()
	m.SecurityMode = SecurityMode(d.Uint8())
	m.Capabilities = Capabilities(d.Uint32())
	m.Channel = d.Uint32()
	off, n := d.Uint16(), d.Uint16()
	m.PreviousSessionID = d.Uint64()
	m.SecurityBuffer = d.buffer("SecurityBuffer", int64(off), int64(n))
	return d.end("SESSION_SETUP request")
}

// SessionFlags tell what kind of session a client got.
type SessionFlags uint16

const (
	SessionFlagIsGuest     SessionFlags = 1
	SessionFlagIsNull      SessionFlags = 2
	SessionFlagEncryptData SessionFlags = 4
)

// SessionSetupResponse answers one leg. See [MS-SMB2] 2.2.6.
type SessionSetupResponse struct {
	SessionFlags   SessionFlags
	SecurityBuffer []byte
}

func (m *SessionSetupResponse) Append(b []byte) []byte {
	b = byteio.Append16(b, sessionSetupResponseSize)
	b = byteio.Append16(b, uint16(m.SessionFlags))
	b = byteio.Append16(b, HeaderSize+sessionSetupResponseSize-1)
	b = byteio.Append16(b, uint16(len(m.SecurityBuffer)))
	return appendBuffer(b, m.SecurityBuffer)
}

func (m *SessionSetupResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(sessionSetupResponseSize)
	m.SessionFlags = SessionFlags(d.Uint16())
	off, n := d.Uint16(), d.Uint16()
	m.SecurityBuffer = d.buffer("SecurityBuffer", int64(off), int64(n))
	return d.end("SESSION_SETUP response")
}
