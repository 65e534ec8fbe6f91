package fleet

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/models"
	"berth/models/store"
	"berth/wire"
)

// joinTokenPrefix makes a token recognisable when it leaks.
const joinTokenPrefix = "bjt_"

// CreateJoinToken makes a token with which one node may join, once, before it
// expires. The token is returned this once; only its hash is kept.
func (s *Service) CreateJoinToken(ctx context.Context, user models.UserID, at models.Instant) (string, models.JoinToken, error) {
	token := joinTokenPrefix + strings.ToLower(rand.Text())
	row := models.JoinToken{Hash: tokenHash(token), CreatedBy: user, CreatedAt: at, ExpiresAt: at.Add(s.cfg.JoinTTL)}
	err := s.st.InTx(ctx, func(tx *store.Tx) error { return tx.InsertJoinToken(row) })
	return token, row, err
}

func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Join makes a node of whoever holds a fresh token; from then on its key is its
// identity. A node whose answer got lost may ask again with the same token and
// key. It fails with Unauthorized for a token that is unknown, used or expired,
// Invalid for a bad key, Conflict for a key that is a node's already.
func (s *Service) Join(ctx context.Context, req wire.JoinRequest, at models.Instant) (out wire.JoinResponse, err error) {
	if len(req.PublicKey) != ed25519.PublicKeySize {
		return out, models.Fieldset{"public_key": fmt.Sprintf("It has %d bytes; an ed25519 key has %d.", len(req.PublicKey), ed25519.PublicKeySize)}.Problem()
	}
	if err := CheckVersion(req.Version); err != nil {
		return out, err
	}
	err = s.st.InTx(ctx, func(tx *store.Tx) error {
		token, err := tx.LockJoinToken(tokenHash(req.Token))
		switch {
		case models.HasCode(err, models.NotFound):
			return refuseToken("There is no such join token.")
		case err != nil:
			return err
		case token.UsedAt != 0:
			n, err := tx.Node(token.NodeID)
			if err != nil {
				return err
			}
			if !slices.Equal(n.PublicKey, req.PublicKey) {
				return refuseToken("This join token was used before.")
			}
			out = wire.JoinResponse{NodeID: string(n.ID), Name: n.Name}
			return nil
		case token.ExpiresAt <= at:
			return refuseToken("This join token has expired.")
		}
		names, err := tx.NodeNames()
		if err != nil {
			return err
		}
		n := models.Node{ID: models.NodeID(store.NewID("nod", at.Time())), Name: nodeName(req.Name, names), PublicKey: req.PublicKey,
			State: models.NodeOffline, Host: []byte("{}"), SeenAt: at, CreatedAt: at}
		if err := tx.InsertNode(n); err != nil {
			return err
		}
		out = wire.JoinResponse{NodeID: string(n.ID), Name: n.Name}
		return tx.UseJoinToken(token.Hash, n.ID, at)
	})
	if errors.Is(err, store.ErrDuplicate) {
		err = &models.Problem{Code: models.Conflict, What: "A node with this key, or this name, has joined already.",
			Next: "Start the agent as it is if it joined before; else empty its data directory, so that it makes a new key, and join again."}
	}
	return out, err
}

func refuseToken(what string) error {
	return &models.Problem{Code: models.Unauthorized, What: what, Next: "Make a new one on the fleet page, or with POST /api/v1/nodes/join-tokens."}
}

// CheckVersion refuses an agent that is more than one release of the protocol away
// from this portal, with a Conflict that says which of them to update.
func CheckVersion(agent int) error {
	if wire.Understands(agent) {
		return nil
	}
	p := &models.Problem{Code: models.Conflict, What: fmt.Sprintf("The agent speaks version %d of the protocol and this portal version %d: they are too far apart.", agent, wire.Version), Next: "Update the agent on the node."}
	if agent > wire.Version {
		p.Next = "Update this portal first, or install an agent of its release on the node."
	}
	return p
}

// nodeName makes a host name of what was asked for that no other node has.
func nodeName(asked string, taken []string) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, asked)
	if len(base) > MaxNameBytes-5 {
		base = base[:MaxNameBytes-5]
	}
	if base = strings.Trim(base, "-"); base == "" {
		base = "node"
	}
	name := base
	for n := 2; slices.Contains(taken, name); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

// NodeKey returns the key that a node proves itself by. It fails with NotFound,
// also for a node that was retired.
func (s *Service) NodeKey(ctx context.Context, id models.NodeID) (key ed25519.PublicKey, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		n, err := tx.Node(id)
		if err == nil && n.State == models.NodeRetired {
			return models.Missing("node", id)
		}
		key = n.PublicKey
		return err
	})
	return key, err
}
