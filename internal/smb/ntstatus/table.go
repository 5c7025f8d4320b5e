package ntstatus

import "syscall"

// See [MS-ERREF] 2.3.1, and [MS-CIFS] 2.2.2.4 for the codes that SMB1 alone has
// (INVALID_SMB, SMB_*, OS2_*). A name is the spec's: STATUS_FOO_BAR is FooBar.
const (
	// Successes, and what comes along with one.
	Success       Status = 0x00000000
	Pending       Status = 0x00000103
	NotifyCleanup Status = 0x0000010B
	NotifyEnumDir Status = 0x0000010C
	Reparse       Status = 0x00000104

	// Warnings: the reply carries data all the same.
	BufferOverflow     Status = 0x80000005
	NoMoreFiles        Status = 0x80000006
	NoMoreEas          Status = 0x80000012
	EaListInconsistent Status = 0x80000014
	InvalidEaName      Status = 0x80000013
	InvalidEaFlag      Status = 0x80000015
	NoMoreEntries      Status = 0x8000001A
	DeviceBusy         Status = 0x80000011
	DeviceOffLine      Status = 0x80000010
	StoppedOnSymlink   Status = 0x8000002D

	// The request is wrong, or asks for what this server does not do.
	Unsuccessful                Status = 0xC0000001
	NotImplemented              Status = 0xC0000002
	InvalidInfoClass            Status = 0xC0000003
	InfoLengthMismatch          Status = 0xC0000004
	InvalidHandle               Status = 0xC0000008
	InvalidCid                  Status = 0xC000000B
	InvalidParameter            Status = 0xC000000D
	InvalidDeviceRequest        Status = 0xC0000010
	BufferTooSmall              Status = 0xC0000023
	InvalidBufferSize           Status = 0xC0000206
	InvalidUserBuffer           Status = 0xC00000E8
	InvalidLevel                Status = 0xC0000148
	NotSupported                Status = 0xC00000BB
	CtlFileNotSupported         Status = 0xC0000057
	FsDriverRequired            Status = 0xC000019C
	OffloadReadFltNotSupported  Status = 0xC000A2A1
	OffloadWriteFltNotSupported Status = 0xC000A2A2
	InvalidSmb                  Status = 0x00010002
	SmbBadTid                   Status = 0x00050002
	SmbBadUid                   Status = 0x005B0002
	SmbBadCommand               Status = 0x00160002
	SmbBadFid                   Status = 0x00060001
	Os2InvalidAccess            Status = 0x000C0001
	Os2InvalidLevel             Status = 0x007C0001
	Os2NegativeSeek             Status = 0x00830001

	// Names.
	NoSuchFile               Status = 0xC000000F
	NoSuchDevice             Status = 0xC000000E
	ObjectNameInvalid        Status = 0xC0000033
	ObjectNameNotFound       Status = 0xC0000034
	ObjectNameCollision      Status = 0xC0000035
	ObjectPathInvalid        Status = 0xC0000039
	ObjectPathNotFound       Status = 0xC000003A
	ObjectPathSyntaxBad      Status = 0xC000003B
	ObjectidNotFound         Status = 0xC00002F0
	NotFound                 Status = 0xC0000225
	NameTooLong              Status = 0xC0000106
	NotADirectory            Status = 0xC0000103
	FileIsADirectory         Status = 0xC00000BA
	DirectoryNotEmpty        Status = 0xC0000101
	NotSameDevice            Status = 0xC00000D4
	TooManyLinks             Status = 0xC0000265
	FileRenamed              Status = 0xC00000D5
	DirectoryIsAReparsePoint Status = 0xC0000281
	NotAReparsePoint         Status = 0xC0000275
	IoReparseTagInvalid      Status = 0xC0000276
	IoReparseTagMismatch     Status = 0xC0000277
	IoReparseDataInvalid     Status = 0xC0000278
	IoReparseTagNotHandled   Status = 0xC0000279
	ReparsePointEncountered  Status = 0xC000050B
	ReparsePointNotResolved  Status = 0xC0000280
	PathNotCovered           Status = 0xC0000257
	DfsExitPathFound         Status = 0xC000009B
	DfsUnavailable           Status = 0xC000026D

	// Open files.
	AccessDenied          Status = 0xC0000022
	PrivilegeNotHeld      Status = 0xC0000061
	SharingViolation      Status = 0xC0000043
	DeletePending         Status = 0xC0000056
	FileDeleted           Status = 0xC0000123
	CannotDelete          Status = 0xC0000121
	FileClosed            Status = 0xC0000128
	FileForcedClosed      Status = 0xC00000B6
	FileInvalid           Status = 0xC0000098
	FileNotAvailable      Status = 0xC0000467
	FileIsOffline         Status = 0xC0000267
	TooManyOpenedFiles    Status = 0xC000011F
	EndOfFile             Status = 0xC0000011
	UserMappedFile        Status = 0xC0000243
	FileLockConflict      Status = 0xC0000054
	LockNotGranted        Status = 0xC0000055
	RangeNotLocked        Status = 0xC000007E
	InvalidLockRange      Status = 0xC00001A1
	InvalidLockSequence   Status = 0xC000001E
	OplockNotGranted      Status = 0xC00000E2
	InvalidOplockProtocol Status = 0xC00000E3
	CannotBreakOplock     Status = 0xC0000909
	EasNotSupported       Status = 0xC000004F
	NoEasOnFile           Status = 0xC0000052
	NonexistentEaEntry    Status = 0xC0000051
	EaTooLarge            Status = 0xC0000050
	EaCorruptError        Status = 0xC0000053
	InvalidOwner          Status = 0xC000005A
	InvalidSecurityDescr  Status = 0xC0000079
	FileEncrypted         Status = 0xC0000293
	EncryptionFailed      Status = 0xC000028A
	DecryptionFailed      Status = 0xC000028B
	VirusInfected         Status = 0xC0000906
	VirusDeleted          Status = 0xC0000907
	CantWait              Status = 0xC00000D8
	DuplicateObjectid     Status = 0xC000022A

	// Disks.
	DiskFull            Status = 0xC000007F
	QuotaExceeded       Status = 0xC0000044
	FileTooLarge        Status = 0xC0000904
	MediaWriteProtected Status = 0xC00000A2
	NoMediaInDevice     Status = 0xC0000013
	WrongVolume         Status = 0xC0000012
	UnrecognizedVolume  Status = 0xC000014F
	VolumeDismounted    Status = 0xC000026E
	DeviceNotReady      Status = 0xC00000A3
	DeviceDataError     Status = 0xC000009C
	DataError           Status = 0xC000003E
	CrcError            Status = 0xC000003F
	FileCorruptError    Status = 0xC0000102
	DiskCorruptError    Status = 0xC0000032
	UnexpectedIoError   Status = 0xC00000E9

	// Logons.
	LogonFailure               Status = 0xC000006D
	WrongPassword              Status = 0xC000006A
	NoSuchUser                 Status = 0xC0000064
	NoSuchDomain               Status = 0xC00000DF
	NoLogonServers             Status = 0xC000005E
	AccountRestriction         Status = 0xC000006E
	AccountDisabled            Status = 0xC0000072
	AccountExpired             Status = 0xC0000193
	AccountLockedOut           Status = 0xC0000234
	PasswordExpired            Status = 0xC0000071
	PasswordMustChange         Status = 0xC0000224
	InvalidLogonHours          Status = 0xC000006F
	InvalidWorkstation         Status = 0xC0000070
	LogonTypeNotGranted        Status = 0xC000015B
	TrustedRelationshipFailure Status = 0xC000018D
	TrustedDomainFailure       Status = 0xC000018C
	NetlogonNotStarted         Status = 0xC0000192
	TimeDifferenceAtDc         Status = 0xC0000133
	NtlmBlocked                Status = 0xC0000418
	DowngradeDetected          Status = 0xC0000388
	MoreProcessingRequired     Status = 0xC0000016

	// Shares, connections and the server itself.
	BadNetworkName                   Status = 0xC00000CC
	BadNetworkPath                   Status = 0xC00000BE
	BadDeviceType                    Status = 0xC00000CB
	NetworkAccessDenied              Status = 0xC00000CA
	NetworkNameDeleted               Status = 0xC00000C9
	NetworkSessionExpired            Status = 0xC000035C
	UserSessionDeleted               Status = 0xC0000203
	RequestNotAccepted               Status = 0xC00000D0
	TooManySessions                  Status = 0xC00000CE
	ConnectionRefused                Status = 0xC0000236
	ConnectionDisconnected           Status = 0xC000020C
	ConnectionReset                  Status = 0xC000020D
	ConnectionInvalid                Status = 0xC000023A
	HostUnreachable                  Status = 0xC000023D
	NetworkUnreachable               Status = 0xC000023C
	NetworkBusy                      Status = 0xC00000BF
	UnexpectedNetworkError           Status = 0xC00000C4
	InvalidNetworkResponse           Status = 0xC00000C3
	RemoteNotListening               Status = 0xC00000BC
	VirtualCircuitClosed             Status = 0xC00000D6
	IoTimeout                        Status = 0xC00000B5
	Cancelled                        Status = 0xC0000120
	Retry                            Status = 0xC000022D
	ServerUnavailable                Status = 0xC0000466
	SmbNoPreauthIntegrityHashOverlap Status = 0xC05D0000
	HashNotSupported                 Status = 0xC000A100
	HashNotPresent                   Status = 0xC000A101
	InsufficientResources            Status = 0xC000009A
	InsuffServerResources            Status = 0xC0000205
	NoMemory                         Status = 0xC0000017
	CommitmentLimit                  Status = 0xC000012D

	// Named pipes.
	PipeNotAvailable Status = 0xC00000AC
	PipeBusy         Status = 0xC00000AE
	PipeDisconnected Status = 0xC00000B0
	PipeClosing      Status = 0xC00000B1
	PipeBroken       Status = 0xC000014B
	PipeEmpty        Status = 0xC00000D9
	InvalidPipeState Status = 0xC00000AD
	InvalidReadMode  Status = 0xC00000B4
	InternalError    Status = 0xC00000E5
)

// table names every status above and says which errno a program meets. Where
// cifs.ko has a mapping that tells programs something, it is the same one, so
// that a mount here and one there fail alike.
var table = map[Status]struct {
	name  string
	errno syscall.Errno
}{
	Success:                          {"STATUS_SUCCESS", 0},
	Pending:                          {"STATUS_PENDING", syscall.EIO},
	NotifyCleanup:                    {"STATUS_NOTIFY_CLEANUP", syscall.EIO},
	NotifyEnumDir:                    {"STATUS_NOTIFY_ENUM_DIR", syscall.EIO},
	Reparse:                          {"STATUS_REPARSE", syscall.EIO},
	BufferOverflow:                   {"STATUS_BUFFER_OVERFLOW", syscall.E2BIG},
	NoMoreFiles:                      {"STATUS_NO_MORE_FILES", syscall.ENODATA},
	NoMoreEas:                        {"STATUS_NO_MORE_EAS", syscall.ENODATA},
	EaListInconsistent:               {"STATUS_EA_LIST_INCONSISTENT", syscall.EINVAL},
	InvalidEaName:                    {"STATUS_INVALID_EA_NAME", syscall.EINVAL},
	InvalidEaFlag:                    {"STATUS_INVALID_EA_FLAG", syscall.EINVAL},
	NoMoreEntries:                    {"STATUS_NO_MORE_ENTRIES", syscall.ENODATA},
	DeviceBusy:                       {"STATUS_DEVICE_BUSY", syscall.EBUSY},
	DeviceOffLine:                    {"STATUS_DEVICE_OFF_LINE", syscall.ENODEV},
	StoppedOnSymlink:                 {"STATUS_STOPPED_ON_SYMLINK", syscall.ELOOP},
	Unsuccessful:                     {"STATUS_UNSUCCESSFUL", syscall.EIO},
	NotImplemented:                   {"STATUS_NOT_IMPLEMENTED", syscall.EOPNOTSUPP},
	InvalidInfoClass:                 {"STATUS_INVALID_INFO_CLASS", syscall.EOPNOTSUPP},
	InfoLengthMismatch:               {"STATUS_INFO_LENGTH_MISMATCH", syscall.EINVAL},
	InvalidHandle:                    {"STATUS_INVALID_HANDLE", syscall.EBADF},
	InvalidCid:                       {"STATUS_INVALID_CID", syscall.EIO},
	InvalidParameter:                 {"STATUS_INVALID_PARAMETER", syscall.EINVAL},
	InvalidDeviceRequest:             {"STATUS_INVALID_DEVICE_REQUEST", syscall.EOPNOTSUPP},
	BufferTooSmall:                   {"STATUS_BUFFER_TOO_SMALL", syscall.ERANGE},
	InvalidBufferSize:                {"STATUS_INVALID_BUFFER_SIZE", syscall.EINVAL},
	InvalidUserBuffer:                {"STATUS_INVALID_USER_BUFFER", syscall.EFAULT},
	InvalidLevel:                     {"STATUS_INVALID_LEVEL", syscall.EOPNOTSUPP},
	NotSupported:                     {"STATUS_NOT_SUPPORTED", syscall.EOPNOTSUPP},
	CtlFileNotSupported:              {"STATUS_CTL_FILE_NOT_SUPPORTED", syscall.EOPNOTSUPP},
	FsDriverRequired:                 {"STATUS_FS_DRIVER_REQUIRED", syscall.EOPNOTSUPP},
	OffloadReadFltNotSupported:       {"STATUS_OFFLOAD_READ_FLT_NOT_SUPPORTED", syscall.EOPNOTSUPP},
	OffloadWriteFltNotSupported:      {"STATUS_OFFLOAD_WRITE_FLT_NOT_SUPPORTED", syscall.EOPNOTSUPP},
	InvalidSmb:                       {"STATUS_INVALID_SMB", syscall.EIO},
	SmbBadTid:                        {"STATUS_SMB_BAD_TID", syscall.EIO},
	SmbBadUid:                        {"STATUS_SMB_BAD_UID", syscall.EIO},
	SmbBadCommand:                    {"STATUS_SMB_BAD_COMMAND", syscall.EOPNOTSUPP},
	SmbBadFid:                        {"STATUS_SMB_BAD_FID", syscall.EBADF},
	Os2InvalidAccess:                 {"STATUS_OS2_INVALID_ACCESS", syscall.EACCES},
	Os2InvalidLevel:                  {"STATUS_OS2_INVALID_LEVEL", syscall.EOPNOTSUPP},
	Os2NegativeSeek:                  {"STATUS_OS2_NEGATIVE_SEEK", syscall.EINVAL},
	NoSuchFile:                       {"STATUS_NO_SUCH_FILE", syscall.ENOENT},
	NoSuchDevice:                     {"STATUS_NO_SUCH_DEVICE", syscall.ENODEV},
	ObjectNameInvalid:                {"STATUS_OBJECT_NAME_INVALID", syscall.ENOENT},
	ObjectNameNotFound:               {"STATUS_OBJECT_NAME_NOT_FOUND", syscall.ENOENT},
	ObjectNameCollision:              {"STATUS_OBJECT_NAME_COLLISION", syscall.EEXIST},
	ObjectPathInvalid:                {"STATUS_OBJECT_PATH_INVALID", syscall.ENOTDIR},
	ObjectPathNotFound:               {"STATUS_OBJECT_PATH_NOT_FOUND", syscall.ENOENT},
	ObjectPathSyntaxBad:              {"STATUS_OBJECT_PATH_SYNTAX_BAD", syscall.EINVAL},
	ObjectidNotFound:                 {"STATUS_OBJECTID_NOT_FOUND", syscall.ENOENT},
	NotFound:                         {"STATUS_NOT_FOUND", syscall.ENOENT},
	NameTooLong:                      {"STATUS_NAME_TOO_LONG", syscall.ENAMETOOLONG},
	NotADirectory:                    {"STATUS_NOT_A_DIRECTORY", syscall.ENOTDIR},
	FileIsADirectory:                 {"STATUS_FILE_IS_A_DIRECTORY", syscall.EISDIR},
	DirectoryNotEmpty:                {"STATUS_DIRECTORY_NOT_EMPTY", syscall.ENOTEMPTY},
	NotSameDevice:                    {"STATUS_NOT_SAME_DEVICE", syscall.EXDEV},
	TooManyLinks:                     {"STATUS_TOO_MANY_LINKS", syscall.EMLINK},
	FileRenamed:                      {"STATUS_FILE_RENAMED", syscall.EIO},
	DirectoryIsAReparsePoint:         {"STATUS_DIRECTORY_IS_A_REPARSE_POINT", syscall.ELOOP},
	NotAReparsePoint:                 {"STATUS_NOT_A_REPARSE_POINT", syscall.ENODATA},
	IoReparseTagInvalid:              {"STATUS_IO_REPARSE_TAG_INVALID", syscall.EINVAL},
	IoReparseTagMismatch:             {"STATUS_IO_REPARSE_TAG_MISMATCH", syscall.EINVAL},
	IoReparseDataInvalid:             {"STATUS_IO_REPARSE_DATA_INVALID", syscall.EINVAL},
	IoReparseTagNotHandled:           {"STATUS_IO_REPARSE_TAG_NOT_HANDLED", syscall.EOPNOTSUPP},
	ReparsePointEncountered:          {"STATUS_REPARSE_POINT_ENCOUNTERED", syscall.ELOOP},
	ReparsePointNotResolved:          {"STATUS_REPARSE_POINT_NOT_RESOLVED", syscall.ELOOP},
	PathNotCovered:                   {"STATUS_PATH_NOT_COVERED", syscall.EREMOTE},
	DfsExitPathFound:                 {"STATUS_DFS_EXIT_PATH_FOUND", syscall.EREMOTE},
	DfsUnavailable:                   {"STATUS_DFS_UNAVAILABLE", syscall.EHOSTDOWN},
	AccessDenied:                     {"STATUS_ACCESS_DENIED", syscall.EACCES},
	PrivilegeNotHeld:                 {"STATUS_PRIVILEGE_NOT_HELD", syscall.EPERM},
	SharingViolation:                 {"STATUS_SHARING_VIOLATION", syscall.EBUSY},
	DeletePending:                    {"STATUS_DELETE_PENDING", syscall.ENOENT},
	FileDeleted:                      {"STATUS_FILE_DELETED", syscall.ENOENT},
	CannotDelete:                     {"STATUS_CANNOT_DELETE", syscall.EACCES},
	FileClosed:                       {"STATUS_FILE_CLOSED", syscall.EBADF},
	FileForcedClosed:                 {"STATUS_FILE_FORCED_CLOSED", syscall.EBADF},
	FileInvalid:                      {"STATUS_FILE_INVALID", syscall.EIO},
	FileNotAvailable:                 {"STATUS_FILE_NOT_AVAILABLE", syscall.EAGAIN},
	FileIsOffline:                    {"STATUS_FILE_IS_OFFLINE", syscall.EAGAIN},
	TooManyOpenedFiles:               {"STATUS_TOO_MANY_OPENED_FILES", syscall.EMFILE},
	EndOfFile:                        {"STATUS_END_OF_FILE", syscall.ENODATA},
	UserMappedFile:                   {"STATUS_USER_MAPPED_FILE", syscall.EBUSY},
	FileLockConflict:                 {"STATUS_FILE_LOCK_CONFLICT", syscall.EACCES},
	LockNotGranted:                   {"STATUS_LOCK_NOT_GRANTED", syscall.EACCES},
	RangeNotLocked:                   {"STATUS_RANGE_NOT_LOCKED", syscall.ENOLCK},
	InvalidLockRange:                 {"STATUS_INVALID_LOCK_RANGE", syscall.EINVAL},
	InvalidLockSequence:              {"STATUS_INVALID_LOCK_SEQUENCE", syscall.EINVAL},
	OplockNotGranted:                 {"STATUS_OPLOCK_NOT_GRANTED", syscall.EAGAIN},
	InvalidOplockProtocol:            {"STATUS_INVALID_OPLOCK_PROTOCOL", syscall.EIO},
	CannotBreakOplock:                {"STATUS_CANNOT_BREAK_OPLOCK", syscall.EBUSY},
	EasNotSupported:                  {"STATUS_EAS_NOT_SUPPORTED", syscall.EOPNOTSUPP},
	NoEasOnFile:                      {"STATUS_NO_EAS_ON_FILE", syscall.ENODATA},
	NonexistentEaEntry:               {"STATUS_NONEXISTENT_EA_ENTRY", syscall.ENODATA},
	EaTooLarge:                       {"STATUS_EA_TOO_LARGE", syscall.E2BIG},
	EaCorruptError:                   {"STATUS_EA_CORRUPT_ERROR", syscall.EIO},
	InvalidOwner:                     {"STATUS_INVALID_OWNER", syscall.EPERM},
	InvalidSecurityDescr:             {"STATUS_INVALID_SECURITY_DESCR", syscall.EINVAL},
	FileEncrypted:                    {"STATUS_FILE_ENCRYPTED", syscall.EACCES},
	EncryptionFailed:                 {"STATUS_ENCRYPTION_FAILED", syscall.EIO},
	DecryptionFailed:                 {"STATUS_DECRYPTION_FAILED", syscall.EIO},
	VirusInfected:                    {"STATUS_VIRUS_INFECTED", syscall.EPERM},
	VirusDeleted:                     {"STATUS_VIRUS_DELETED", syscall.ENOENT},
	CantWait:                         {"STATUS_CANT_WAIT", syscall.EAGAIN},
	DuplicateObjectid:                {"STATUS_DUPLICATE_OBJECTID", syscall.EEXIST},
	DiskFull:                         {"STATUS_DISK_FULL", syscall.ENOSPC},
	QuotaExceeded:                    {"STATUS_QUOTA_EXCEEDED", syscall.EDQUOT},
	FileTooLarge:                     {"STATUS_FILE_TOO_LARGE", syscall.EFBIG},
	MediaWriteProtected:              {"STATUS_MEDIA_WRITE_PROTECTED", syscall.EROFS},
	NoMediaInDevice:                  {"STATUS_NO_MEDIA_IN_DEVICE", syscall.ENXIO},
	WrongVolume:                      {"STATUS_WRONG_VOLUME", syscall.ENXIO},
	UnrecognizedVolume:               {"STATUS_UNRECOGNIZED_VOLUME", syscall.ENXIO},
	VolumeDismounted:                 {"STATUS_VOLUME_DISMOUNTED", syscall.ENODEV},
	DeviceNotReady:                   {"STATUS_DEVICE_NOT_READY", syscall.ENODEV},
	DeviceDataError:                  {"STATUS_DEVICE_DATA_ERROR", syscall.EIO},
	DataError:                        {"STATUS_DATA_ERROR", syscall.EIO},
	CrcError:                         {"STATUS_CRC_ERROR", syscall.EIO},
	FileCorruptError:                 {"STATUS_FILE_CORRUPT_ERROR", syscall.EIO},
	DiskCorruptError:                 {"STATUS_DISK_CORRUPT_ERROR", syscall.EIO},
	UnexpectedIoError:                {"STATUS_UNEXPECTED_IO_ERROR", syscall.EIO},
	LogonFailure:                     {"STATUS_LOGON_FAILURE", syscall.EACCES},
	WrongPassword:                    {"STATUS_WRONG_PASSWORD", syscall.EACCES},
	NoSuchUser:                       {"STATUS_NO_SUCH_USER", syscall.EACCES},
	NoSuchDomain:                     {"STATUS_NO_SUCH_DOMAIN", syscall.EACCES},
	NoLogonServers:                   {"STATUS_NO_LOGON_SERVERS", syscall.EHOSTUNREACH},
	AccountRestriction:               {"STATUS_ACCOUNT_RESTRICTION", syscall.EACCES},
	AccountDisabled:                  {"STATUS_ACCOUNT_DISABLED", syscall.EACCES},
	AccountExpired:                   {"STATUS_ACCOUNT_EXPIRED", syscall.EACCES},
	AccountLockedOut:                 {"STATUS_ACCOUNT_LOCKED_OUT", syscall.EACCES},
	PasswordExpired:                  {"STATUS_PASSWORD_EXPIRED", syscall.EACCES},
	PasswordMustChange:               {"STATUS_PASSWORD_MUST_CHANGE", syscall.EACCES},
	InvalidLogonHours:                {"STATUS_INVALID_LOGON_HOURS", syscall.EACCES},
	InvalidWorkstation:               {"STATUS_INVALID_WORKSTATION", syscall.EACCES},
	LogonTypeNotGranted:              {"STATUS_LOGON_TYPE_NOT_GRANTED", syscall.EACCES},
	TrustedRelationshipFailure:       {"STATUS_TRUSTED_RELATIONSHIP_FAILURE", syscall.EACCES},
	TrustedDomainFailure:             {"STATUS_TRUSTED_DOMAIN_FAILURE", syscall.EACCES},
	NetlogonNotStarted:               {"STATUS_NETLOGON_NOT_STARTED", syscall.EACCES},
	TimeDifferenceAtDc:               {"STATUS_TIME_DIFFERENCE_AT_DC", syscall.EACCES},
	NtlmBlocked:                      {"STATUS_NTLM_BLOCKED", syscall.EACCES},
	DowngradeDetected:                {"STATUS_DOWNGRADE_DETECTED", syscall.EACCES},
	MoreProcessingRequired:           {"STATUS_MORE_PROCESSING_REQUIRED", syscall.EIO},
	BadNetworkName:                   {"STATUS_BAD_NETWORK_NAME", syscall.ENOENT},
	BadNetworkPath:                   {"STATUS_BAD_NETWORK_PATH", syscall.ENOENT},
	BadDeviceType:                    {"STATUS_BAD_DEVICE_TYPE", syscall.ENODEV},
	NetworkAccessDenied:              {"STATUS_NETWORK_ACCESS_DENIED", syscall.EACCES},
	NetworkNameDeleted:               {"STATUS_NETWORK_NAME_DELETED", syscall.EIO},
	NetworkSessionExpired:            {"STATUS_NETWORK_SESSION_EXPIRED", syscall.EIO},
	UserSessionDeleted:               {"STATUS_USER_SESSION_DELETED", syscall.EIO},
	RequestNotAccepted:               {"STATUS_REQUEST_NOT_ACCEPTED", syscall.EUSERS},
	TooManySessions:                  {"STATUS_TOO_MANY_SESSIONS", syscall.EUSERS},
	ConnectionRefused:                {"STATUS_CONNECTION_REFUSED", syscall.ECONNREFUSED},
	ConnectionDisconnected:           {"STATUS_CONNECTION_DISCONNECTED", syscall.ECONNRESET},
	ConnectionReset:                  {"STATUS_CONNECTION_RESET", syscall.ECONNRESET},
	ConnectionInvalid:                {"STATUS_CONNECTION_INVALID", syscall.ENOTCONN},
	HostUnreachable:                  {"STATUS_HOST_UNREACHABLE", syscall.EHOSTUNREACH},
	NetworkUnreachable:               {"STATUS_NETWORK_UNREACHABLE", syscall.ENETUNREACH},
	NetworkBusy:                      {"STATUS_NETWORK_BUSY", syscall.EBUSY},
	UnexpectedNetworkError:           {"STATUS_UNEXPECTED_NETWORK_ERROR", syscall.EIO},
	InvalidNetworkResponse:           {"STATUS_INVALID_NETWORK_RESPONSE", syscall.EIO},
	RemoteNotListening:               {"STATUS_REMOTE_NOT_LISTENING", syscall.EHOSTDOWN},
	VirtualCircuitClosed:             {"STATUS_VIRTUAL_CIRCUIT_CLOSED", syscall.ECONNRESET},
	IoTimeout:                        {"STATUS_IO_TIMEOUT", syscall.ETIMEDOUT},
	Cancelled:                        {"STATUS_CANCELLED", syscall.ECANCELED},
	Retry:                            {"STATUS_RETRY", syscall.EAGAIN},
	ServerUnavailable:                {"STATUS_SERVER_UNAVAILABLE", syscall.EAGAIN},
	SmbNoPreauthIntegrityHashOverlap: {"STATUS_SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP", syscall.EINVAL},
	HashNotSupported:                 {"STATUS_HASH_NOT_SUPPORTED", syscall.EOPNOTSUPP},
	HashNotPresent:                   {"STATUS_HASH_NOT_PRESENT", syscall.EOPNOTSUPP},
	InsufficientResources:            {"STATUS_INSUFFICIENT_RESOURCES", syscall.EAGAIN},
	InsuffServerResources:            {"STATUS_INSUFF_SERVER_RESOURCES", syscall.EAGAIN},
	NoMemory:                         {"STATUS_NO_MEMORY", syscall.ENOMEM},
	CommitmentLimit:                  {"STATUS_COMMITMENT_LIMIT", syscall.ENOMEM},
	PipeNotAvailable:                 {"STATUS_PIPE_NOT_AVAILABLE", syscall.EBUSY},
	PipeBusy:                         {"STATUS_PIPE_BUSY", syscall.EBUSY},
	PipeDisconnected:                 {"STATUS_PIPE_DISCONNECTED", syscall.EPIPE},
	PipeClosing:                      {"STATUS_PIPE_CLOSING", syscall.EPIPE},
	PipeBroken:                       {"STATUS_PIPE_BROKEN", syscall.EPIPE},
	PipeEmpty:                        {"STATUS_PIPE_EMPTY", syscall.EAGAIN},
	InvalidPipeState:                 {"STATUS_INVALID_PIPE_STATE", syscall.EIO},
	InvalidReadMode:                  {"STATUS_INVALID_READ_MODE", syscall.EIO},
	InternalError:                    {"STATUS_INTERNAL_ERROR", syscall.EIO},
}
