package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// EchoRequest asks whether the server is alive. See [MS-SMB2] 2.2.28.
type EchoRequest struct{}

func (*EchoRequest) Append(b []byte) []byte { return appendEmpty(b) }

func (*EchoRequest) Decode(r *byteio.Reader) error { return decodeEmpty(r, "ECHO request") }

// See [MS-SMB2] 2.2.29.
type EchoResponse struct{}

func (*EchoResponse) Append(b []byte) []byte { return appendEmpty(b) }

func (*EchoResponse) Decode(r *byteio.Reader) error { return decodeEmpty(r, "ECHO response") }
