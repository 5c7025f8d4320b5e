package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// LogoffRequest ends a session. See [MS-SMB2] 2.2.7.
type LogoffRequest struct{}

func (*LogoffRequest) Append(b []byte) []byte { return appendEmpty(b) }

func (*LogoffRequest) Decode(r *byteio.Reader) error { return decodeEmpty(r, "LOGOFF request") }

// See [MS-SMB2] 2.2.8.
type LogoffResponse struct{}

func (*LogoffResponse) Append(b []byte) []byte { return appendEmpty(b) }

func (*LogoffResponse) Decode(r *byteio.Reader) error { return decodeEmpty(r, "LOGOFF response") }
