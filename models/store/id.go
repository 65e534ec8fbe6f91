package store

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID makes an opaque identifier: prefix, then 48 bits of milliseconds and 72
// random bits in Crockford's base32, so that ids of one kind sort by age.
func NewID(prefix string, at time.Time) string {
	var b [15]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(b[:6], ms[2:])
	_, _ = rand.Read(b[6:]) // never fails: crypto/rand crashes the program instead
	return prefix + "_" + idEncoding.EncodeToString(b[:])
}
