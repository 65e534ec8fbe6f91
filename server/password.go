package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"berth/models"
)

// The cost of one password hash: OWASP's argon2id setting with 19 MiB; 41 ms on
// one core of the machine it was measured on.
const (
	argonTime    = 2
	argonMemory  = 19 * 1024 // KiB
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
)

// Password lengths in bytes. The upper bound keeps a request from buying more
// than one hash's worth of work.
const (
	passwordMin = 12
	passwordMax = 1024
)

// hasher makes and checks password hashes, no more at a time than there are
// cores: each takes 19 MiB, and more at once would only be slower.
type hasher struct {
	slots chan struct{}
	// decoy is checked against for an unknown e-mail, so that the answer takes as
	// long as for a known one.
	decoy string
}

func newHasher() *hasher {
	h := &hasher{slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	h.decoy = encodeHash(randomBytes(argonSalt), randomBytes(argonKey))
	return h
}

// hash returns a password's hash with its parameters. It fails with an
// Unavailable Problem when no core comes free in time, or with ctx.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	salt := randomBytes(argonSalt)
	return encodeHash(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey)), nil
}

// matches tells whether password is the one that encoded was made of; an empty
// encoded takes as long and never matches. It fails as hash does.
func (h *hasher) matches(ctx context.Context, password, encoded string) (bool, error) {
	known := encoded != ""
	if !known {
		encoded = h.decoy
	}
	salt, key, err := decodeHash(encoded)
	if err != nil {
		return false, err
	}
	if err := h.enter(ctx); err != nil {
		return false, err
	}
	defer h.leave()
	got := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, uint32(len(key)))
	return subtle.ConstantTimeCompare(got, key) == 1 && known, nil
}

func (h *hasher) enter(ctx context.Context) error {
	patience := time.NewTimer(20 * time.Second)
	defer patience.Stop()
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-patience.C:
		return &models.Problem{Code: models.Unavailable, What: "Too many people are signing in just now.", Next: "Try again in a minute."}
	}
}

func (h *hasher) leave() { <-h.slots }

// hashHead is the head of the encoding that argon2's reference command writes.
var hashHead = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$", argon2.Version, argonMemory, argonTime, argonThreads)

func encodeHash(salt, key []byte) string {
	return hashHead + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(key)
}

func decodeHash(encoded string) (salt, key []byte, err error) {
	rest, ok := strings.CutPrefix(encoded, hashHead)
	if !ok {
		return nil, nil, fmt.Errorf("a password hash with parameters that this Berth does not make")
	}
	saltText, keyText, _ := strings.Cut(rest, "$")
	if salt, err = base64.RawStdEncoding.DecodeString(saltText); err != nil {
		return nil, nil, fmt.Errorf("read a password hash's salt: %w", err)
	}
	if key, err = base64.RawStdEncoding.DecodeString(keyText); err != nil || len(key) != argonKey {
		return nil, nil, fmt.Errorf("a password hash of %d bytes: %w", len(key), err)
	}
	return salt, key, nil
}

// randomBytes never fails: crypto/rand ends the program instead.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// newSecret is 256 random bits as text that is safe in cookies and headers.
func newSecret() string { return base64.RawURLEncoding.EncodeToString(randomBytes(32)) }

// hashSecret is what is kept of a secret. A plain hash suffices, since the
// secrets are random and long.
func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
