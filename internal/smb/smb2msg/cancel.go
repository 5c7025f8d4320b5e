package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// CancelRequest asks for an early end of the request whose MessageID or, once
// there was an interim reply, AsyncID its header repeats. It takes no credit
// and has no reply of its own. See [MS-SMB2] 2.2.30.
type CancelRequest struct{}

func (*CancelRequest) Append(b []byte) []byte { return appendEmpty(b) }

func (*CancelRequest) Decode(r *byteio.Reader) error { return decodeEmpty(r, "CANCEL request") }
