package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Client calls the API of one portal with one token.
type Client struct {
	Base  string // of the portal: http://127.0.0.1:8080
	Token string // brt_…
	HTTP  *http.Client
}

// New makes a client with a time limit of 20 s per call.
func New(base, token string) *Client {
	return &Client{Base: strings.TrimRight(base, "/"), Token: token, HTTP: &http.Client{Timeout: 20 * time.Second}}
}

// Do makes one call. body and into may be nil. An answer of 400 and above comes
// back as a *Problem.
func (c *Client) Do(ctx context.Context, method, path string, body, into any) error {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+Prefix+path, payload)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	res, err := c.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("call the portal: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 400 {
		p := &Problem{Status: res.StatusCode, Title: res.Status}
		if err := json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(p); err != nil || p.Detail == "" {
			p.Detail = fmt.Sprintf("%s %s: %s", method, path, res.Status)
		}
		return p
	}
	if into == nil || res.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("read the portal's answer to %s %s: %w", method, path, err)
	}
	return nil
}

// Nodes lists the fleet.
func (c *Client) Nodes(ctx context.Context) (List[Node], error) {
	var list List[Node]
	err := c.Do(ctx, http.MethodGet, "/nodes", nil, &list)
	return list, err
}

// CreateJoinToken makes a one-time token for a node.
func (c *Client) CreateJoinToken(ctx context.Context) (JoinToken, error) {
	var token JoinToken
	err := c.Do(ctx, http.MethodPost, "/nodes/join-tokens", struct{}{}, &token)
	return token, err
}
