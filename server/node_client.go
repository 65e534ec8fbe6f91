package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"berth/models"
	"berth/wire"
)

// get reads one JSON answer from the node, within callLimit.
func (ch *nodeChannel) get(ctx context.Context, path string, into any) error {
	return ch.call(ctx, http.MethodGet, path, nil, into)
}

// put sends one JSON body and reads the answer, within callLimit.
func (ch *nodeChannel) put(ctx context.Context, path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return ch.call(ctx, http.MethodPut, path, bytes.NewReader(b), into)
}

func (ch *nodeChannel) call(ctx context.Context, method, path string, body io.Reader, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	res, err := ch.do(ctx, method, path, body, nil, http.StatusOK)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(into)
}

// stream opens a long answer; it ends with ctx or when closed.
func (ch *nodeChannel) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	res, err := ch.do(ctx, http.MethodGet, path, nil, nil, http.StatusOK)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// do sends a request and wants a status. What the node refuses comes back as the
// Problem it wrote.
func (ch *nodeChannel) do(ctx context.Context, method, path string, body io.Reader, head http.Header, want int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://node"+path, body)
	if err != nil {
		return nil, err
	}
	for k, v := range head {
		req.Header[k] = v
	}
	req.Header.Set(wire.VersionHeader, strconv.Itoa(wire.Version))
	res, err := ch.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == want {
		return res, nil
	}
	defer res.Body.Close()
	var said struct{ Detail, Next string }
	if err := json.NewDecoder(io.LimitReader(res.Body, 16<<10)).Decode(&said); err != nil || said.Detail == "" {
		return nil, fmt.Errorf("%s %s: the node answered %s", method, path, res.Status)
	}
	code := models.Conflict
	if res.StatusCode == http.StatusNotFound {
		code = models.NotFound
	}
	return nil, &models.Problem{Code: code, What: said.Detail, Next: said.Next}
}

// logs reads the end of a run's log, at most tail bytes.
func (l *links) logs(ctx context.Context, in models.Instance, tail int64) ([]byte, error) {
	ch, err := l.channel(in.NodeID, wire.Bulk)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	query := url.Values{"run": {strconv.Itoa(in.Run)}, "tail": {strconv.FormatInt(tail, 10)}}
	res, err := ch.do(ctx, http.MethodGet, "/v1/instances/"+url.PathEscape(string(in.ID))+"/logs?"+query.Encode(), nil, nil, http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, tail))
}

// terminal attaches to a terminal session inside an instance. What is returned
// carries wire's terminal frames; closing it detaches, the shell goes on.
func (l *links) terminal(ctx context.Context, in models.Instance, session string, cols, rows int) (io.ReadWriteCloser, error) {
	ch, err := l.channel(in.NodeID, wire.Control)
	if err != nil {
		return nil, err
	}
	query := url.Values{"session": {session}, "cols": {strconv.Itoa(cols)}, "rows": {strconv.Itoa(rows)}}
	head := http.Header{"Connection": {"Upgrade"}, "Upgrade": {wire.TerminalProtocol}}
	res, err := ch.do(ctx, http.MethodPost, "/v1/instances/"+url.PathEscape(string(in.ID))+"/exec?"+query.Encode(), nil, head, http.StatusSwitchingProtocols)
	if err != nil {
		return nil, err
	}
	conn, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, errors.Join(errors.New("the node's terminal cannot be written to"), res.Body.Close())
	}
	return conn, nil
}
