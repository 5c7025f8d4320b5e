package smbserver

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// ParseDialects, ParseCiphers and ParseSignings turn names, as String returns
// them, into a Config's values; no names are nil.
func ParseDialects(names []string) ([]smb2msg.Dialect, error) {
	return parse(names, smb2msg.SMB202, smb2msg.SMB210, smb2msg.SMB300, smb2msg.SMB302, smb2msg.SMB311)
}

func ParseCiphers(names []string) ([]smbcrypt.Cipher, error) {
	return parse(names, smbcrypt.AES128CCM, smbcrypt.AES128GCM, smbcrypt.AES256CCM, smbcrypt.AES256GCM)
}

func ParseSignings(names []string) ([]smbcrypt.Signing, error) {
	return parse(names, smbcrypt.HMACSHA256, smbcrypt.AESCMAC, smbcrypt.AESGMAC)
}

// ParseLease turns what a lease allows, such as "RH", into its value.
func ParseLease(rights string) (smb2msg.LeaseState, error) {
	var state smb2msg.LeaseState
	for _, c := range rights {
		switch c {
		case 'R':
			state |= leaseRead
		case 'W':
			state |= leaseWrite
		case 'H':
			state |= leaseHandle
		default:
			return 0, fmt.Errorf("%q has other letters than R, W and H", rights)
		}
	}
	if state != legal(state) {
		return 0, fmt.Errorf("%q has W or H but not R", rights)
	}
	return state, nil
}

func parse[T fmt.Stringer](names []string, known ...T) ([]T, error) {
	if names == nil {
		return nil, nil
	}
	list := make([]T, 0, len(names))
	for _, name := range names {
		n := len(list)
		for _, v := range known {
			if v.String() == name {
				list = append(list, v)
			}
		}
		if len(list) == n {
			return nil, fmt.Errorf("%q is none of %v", name, known)
		}
	}
	return list, nil
}
