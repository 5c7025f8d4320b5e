package smb2msg

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/pagewire/pagewire/internal/byteio"
)

// fuzz feeds a decoder. What it accepts must survive appending and decoding.
func fuzz[T any, M interface {
	*T
	message
}](f *testing.F) {
	for _, m := range samples {
		if m, ok := m.(M); ok {
			f.Add(encode(Header{}, m)[HeaderSize:])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(M(new(T)), append(make([]byte, HeaderSize), b...))
		if err != nil {
			return
		}
		// Data starts where its sender likes; ours starts as soon as it can.
		switch m := m.(type) {
		case *ReadResponse:
			m.DataOffset = ReadDataOffset
		case *WriteRequest:
			m.DataOffset = WriteDataOffset
		}
		again, err := decode(m, encode(Header{}, m))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v becomes %+v, %v", m, again, err)
		}
	})
}

func FuzzNegotiateRequest(f *testing.F)              { fuzz[NegotiateRequest](f) }
func FuzzNegotiateResponse(f *testing.F)             { fuzz[NegotiateResponse](f) }
func FuzzSessionSetupRequest(f *testing.F)           { fuzz[SessionSetupRequest](f) }
func FuzzSessionSetupResponse(f *testing.F)          { fuzz[SessionSetupResponse](f) }
func FuzzLogoffRequest(f *testing.F)                 { fuzz[LogoffRequest](f) }
func FuzzLogoffResponse(f *testing.F)                { fuzz[LogoffResponse](f) }
func FuzzTreeConnectRequest(f *testing.F)            { fuzz[TreeConnectRequest](f) }
func FuzzTreeConnectResponse(f *testing.F)           { fuzz[TreeConnectResponse](f) }
func FuzzTreeDisconnectRequest(f *testing.F)         { fuzz[TreeDisconnectRequest](f) }
func FuzzTreeDisconnectResponse(f *testing.F)        { fuzz[TreeDisconnectResponse](f) }
func FuzzCreateRequest(f *testing.F)                 { fuzz[CreateRequest](f) }
func FuzzCreateResponse(f *testing.F)                { fuzz[CreateResponse](f) }
func FuzzCloseRequest(f *testing.F)                  { fuzz[CloseRequest](f) }
func FuzzCloseResponse(f *testing.F)                 { fuzz[CloseResponse](f) }
func FuzzFlushRequest(f *testing.F)                  { fuzz[FlushRequest](f) }
func FuzzFlushResponse(f *testing.F)                 { fuzz[FlushResponse](f) }
func FuzzReadRequest(f *testing.F)                   { fuzz[ReadRequest](f) }
func FuzzReadResponse(f *testing.F)                  { fuzz[ReadResponse](f) }
func FuzzWriteRequest(f *testing.F)                  { fuzz[WriteRequest](f) }
func FuzzWriteResponse(f *testing.F)                 { fuzz[WriteResponse](f) }
func FuzzLockRequest(f *testing.F)                   { fuzz[LockRequest](f) }
func FuzzLockResponse(f *testing.F)                  { fuzz[LockResponse](f) }
func FuzzIoctlRequest(f *testing.F)                  { fuzz[IoctlRequest](f) }
func FuzzIoctlResponse(f *testing.F)                 { fuzz[IoctlResponse](f) }
func FuzzCancelRequest(f *testing.F)                 { fuzz[CancelRequest](f) }
func FuzzEchoRequest(f *testing.F)                   { fuzz[EchoRequest](f) }
func FuzzEchoResponse(f *testing.F)                  { fuzz[EchoResponse](f) }
func FuzzQueryDirectoryRequest(f *testing.F)         { fuzz[QueryDirectoryRequest](f) }
func FuzzQueryDirectoryResponse(f *testing.F)        { fuzz[QueryDirectoryResponse](f) }
func FuzzChangeNotifyRequest(f *testing.F)           { fuzz[ChangeNotifyRequest](f) }
func FuzzChangeNotifyResponse(f *testing.F)          { fuzz[ChangeNotifyResponse](f) }
func FuzzQueryInfoRequest(f *testing.F)              { fuzz[QueryInfoRequest](f) }
func FuzzQueryInfoResponse(f *testing.F)             { fuzz[QueryInfoResponse](f) }
func FuzzSetInfoRequest(f *testing.F)                { fuzz[SetInfoRequest](f) }
func FuzzSetInfoResponse(f *testing.F)               { fuzz[SetInfoResponse](f) }
func FuzzOplockBreak(f *testing.F)                   { fuzz[OplockBreak](f) }
func FuzzLeaseBreakNotification(f *testing.F)        { fuzz[LeaseBreakNotification](f) }
func FuzzLeaseBreak(f *testing.F)                    { fuzz[LeaseBreak](f) }
func FuzzErrorResponse(f *testing.F)                 { fuzz[ErrorResponse](f) }
func FuzzSymlinkErrorResponse(f *testing.F)          { fuzz[SymlinkErrorResponse](f) }
func FuzzLease(f *testing.F)                         { fuzz[Lease](f) }
func FuzzQueryMaximalAccessRequest(f *testing.F)     { fuzz[QueryMaximalAccessRequest](f) }
func FuzzQueryMaximalAccessResponse(f *testing.F)    { fuzz[QueryMaximalAccessResponse](f) }
func FuzzQueryOnDiskIDResponse(f *testing.F)         { fuzz[QueryOnDiskIDResponse](f) }
func FuzzAllocationSize(f *testing.F)                { fuzz[AllocationSize](f) }
func FuzzTimewarpToken(f *testing.F)                 { fuzz[TimewarpToken](f) }
func FuzzDurableHandleRequest(f *testing.F)          { fuzz[DurableHandleRequest](f) }
func FuzzDurableHandleReconnect(f *testing.F)        { fuzz[DurableHandleReconnect](f) }
func FuzzDurableHandleResponse(f *testing.F)         { fuzz[DurableHandleResponse](f) }
func FuzzDurableHandleRequestV2(f *testing.F)        { fuzz[DurableHandleRequestV2](f) }
func FuzzDurableHandleReconnectV2(f *testing.F)      { fuzz[DurableHandleReconnectV2](f) }
func FuzzDurableHandleResponseV2(f *testing.F)       { fuzz[DurableHandleResponseV2](f) }
func FuzzValidateNegotiateInfoRequest(f *testing.F)  { fuzz[ValidateNegotiateInfoRequest](f) }
func FuzzValidateNegotiateInfoResponse(f *testing.F) { fuzz[ValidateNegotiateInfoResponse](f) }
func FuzzNetworkInterfaceInfo(f *testing.F)          { fuzz[NetworkInterfaceInfo](f) }
func FuzzResumeKey(f *testing.F)                     { fuzz[ResumeKey](f) }
func FuzzCopychunkRequest(f *testing.F)              { fuzz[CopychunkRequest](f) }
func FuzzCopychunkResponse(f *testing.F)             { fuzz[CopychunkResponse](f) }

func FuzzHeader(f *testing.F) {
	for _, h := range headers {
		f.Add(h.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := byteio.NewReader(b)
		var h, again Header
		if h.Decode(&r) != nil {
			return
		}
		r = byteio.NewReader(h.Append(nil))
		if err := again.Decode(&r); err != nil || again != h {
			t.Errorf("%+v becomes %+v, %v", h, again, err)
		}
	})
}

func FuzzTransformHeader(f *testing.F) {
	f.Add((&TransformHeader{guid, key, 1, TransformEncrypted, 2}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := byteio.NewReader(b)
		var h, again TransformHeader
		if h.Decode(&r) != nil {
			return
		}
		r = byteio.NewReader(h.Append(nil))
		if err := again.Decode(&r); err != nil || again != h {
			t.Errorf("%+v becomes %+v, %v", h, again, err)
		}
	})
}

// Next must get through any frame and lose nothing of it.
func FuzzNext(f *testing.F) {
	f.Add(PutNextCommand((&Header{}).Append(nil), 0))
	f.Add((&Header{}).Append(PutNextCommand((&Header{}).Append(nil), 0)))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var got []byte
		for rest := frame; len(rest) > 0; {
			m, next, err := Next(rest)
			if err != nil {
				return
			}
			if len(m) < HeaderSize {
				t.Fatalf("a message of %d bytes", len(m))
			}
			got, rest = append(got, m...), next
		}
		if !bytes.Equal(got, frame) {
			t.Errorf("%x falls into parts that make %x", frame, got)
		}
	})
}
