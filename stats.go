package pagewire

import "time"

// Stats is a snapshot of what a connection, and a file system on it, is and has done.
type Stats struct {
	Server  string // host:port
	Dialect string // "3.1.1"
	Signing string // "AES-GMAC"; "": not signed
	Cipher  string // "AES-128-GCM"; "": not sealed
	RTT     time.Duration

	// Limits of the server and the options on one request.
	MaxRead, MaxWrite, MaxTransact int
	// Credits the connection has now, those in use included.
	Credits int

	Requests int64 // of every kind, since the connection began

	Read, Write Traffic
}

// Traffic is one direction of the data of files.
type Traffic struct {
	Requests, Bytes int64
	InFlight        int // requests now
	MaxInFlight     int
	Smallest        int // bytes of a request
	Largest         int
	Window          int // requests that are best in flight, by what was measured
	Size            int // and how large
}
