// Package agent is the program on each GPU host. It keeps a link to its portal,
// brings the node to what the portal wants (slices on devices, instances in a
// runtime), journals what costs money and samples once a second. It knows
// neither accounts nor prices.
//
// What always holds: a fact that costs money is on disk before the agent acts
// further; killed at any line and started again it converges to the same; the
// instances go on without it and without the portal.
//
// Its folder holds node.key and node.json (who it is), lock, desired.json (what
// the portal last wanted), journal (facts not acknowledged yet) and grants.json
// (which instance holds which slice).
package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"berth/agent/device"
	"berth/agent/runtime"
	"berth/wire"
)

// ErrNotJoined is returned by Run for a folder that no portal knows yet.
var ErrNotJoined = errors.New("this node has not joined a portal: run `berth agent` with --portal and --token as the portal's fleet page shows")

// HostSystem is the image of the sandbox runtime: the host's own programs.
const HostSystem = "host system"

// Config is what an agent is made of.
type Config struct {
	Dir       string // the agent's folder, as Join filled it
	PortalURL string // empty: where the node joined. A portal that moved is told here
	Version   string // of this program, shown to the operator
	Runtime   runtime.Driver
	Devices   device.Driver
	Images    []string      // what can be launched; empty: HostSystem
	StopGrace time.Duration // between SIGTERM and SIGKILL; 0: 10 s
	Log       *slog.Logger
	Now       func() time.Time // nil: time.Now. Only shown and stamped, nothing is measured by it
	Metrics   net.Listener     // where Prometheus may read the cards; nil: nowhere. Run closes it
}

// Agent is one node's program.
type Agent struct {
	config Config
}

// New checks the configuration.
func New(c Config) (*Agent, error) {
	if c.Dir == "" || c.Runtime == nil || c.Devices == nil || c.Log == nil {
		return nil, errors.New("an agent needs a folder, a runtime, devices and a log")
	}
	if len(c.Images) == 0 {
		c.Images = []string{HostSystem}
	}
	if c.StopGrace == 0 {
		c.StopGrace = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Agent{config: c}, nil
}

// Run works until ctx ends, which is no error; instances go on. It fails at once
// if another agent has the folder, or with ErrNotJoined. Runtime and devices
// stay open for their owner to close.
func (a *Agent) Run(ctx context.Context) error {
	c := a.config
	lock, err := lockDir(c.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	identity, joined, err := LoadIdentity(c.Dir)
	switch {
	case err != nil:
		return err
	case !joined:
		return ErrNotJoined
	case c.PortalURL == "":
		c.PortalURL = identity.PortalURL
	}
	portal, err := portalBase(c.PortalURL)
	if err != nil {
		return err
	}
	key, err := loadKey(filepath.Join(c.Dir, keyFile))
	if err != nil {
		return err
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	log := c.Log.With("node", identity.NodeID)
	journal, err := openJournal(filepath.Join(c.Dir, "journal"), log)
	if err != nil {
		return err
	}
	defer journal.close()
	grants, err := openGrants(filepath.Join(c.Dir, "grants.json"))
	if err != nil {
		return err
	}
	sup := &supervisor{
		dir:     c.Dir,
		runtime: c.Runtime,
		slicer:  &slicer{devices: c.Devices, grants: grants, log: log},
		tables:  newTables(c.Devices, log),
		journal: journal,
		images:  c.Images,
		grace:   c.StopGrace,
		bootID:  boot,
		now:     c.Now,
		log:     log,
		workers: map[string]*worker{},
	}
	if err := sup.load(); err != nil {
		return err
	}
	sup.layouts = newLayouts(sup.slicer, c.Now, sup.faults.note)
	sup.slicer.freed = sup.layouts.wake
	sup.layouts.want(sup.desired.Layouts)
	host, err := describeHost(ctx, identity.Name, c.Dir, c.Images, c.Runtime, c.Devices)
	if err != nil {
		return err
	}
	samples := &sampler{supervisor: sup, devices: c.Devices, listeners: map[chan wire.Tick]struct{}{}}
	requests := &api{supervisor: sup, sampler: samples, state: func(ctx context.Context) (wire.State, error) {
		return a.state(ctx, sup, host)
	}}
	l := &link{portal: portal, nodeID: identity.NodeID, bootID: boot, key: key, handler: requests.routes(), log: log, opened: func(channel wire.Channel) {
		if channel == wire.Control {
			sup.unconfirm()
		}
	}}

	sup.begin(ctx) // before the first request for the state: it must miss nothing
	log.Info("agent runs", "portal", portal, "runtime", host.Runtime.Mode, "simulated", host.Simulated)
	var parts sync.WaitGroup
	parts.Go(func() { sup.run(ctx) })
	parts.Go(func() { sup.layouts.run(ctx) })
	parts.Go(func() { samples.run(ctx) })
	parts.Go(func() { l.run(ctx, wire.Control) })
	parts.Go(func() { l.run(ctx, wire.Bulk) })
	if c.Metrics != nil {
		parts.Go(func() { serveMetrics(ctx, c.Metrics, metricsHandler(c.Devices, host.Name, c.Dir), log) })
	}
	parts.Wait()
	return nil
}

// state is a snapshot of the node.
func (a *Agent) state(ctx context.Context, sup *supervisor, host wire.Host) (wire.State, error) {
	// The numbers first: what the snapshot lacks then is lacking as of these
	// numbers or later. The other way round, an instance that came up in between
	// would be missing as of a number that tells of it, and be taken for lost.
	sup.mu.Lock()
	generation := sup.desired.Generation
	sup.mu.Unlock()
	last := sup.journal.lastSeq()
	inventory := sup.faults.version()
	instances, err := sup.observed(ctx)
	if err != nil {
		return wire.State{}, err
	}
	_, devices, err := sup.devices(ctx)
	if err != nil {
		return wire.State{}, err
	}
	return wire.State{
		Version:      wire.Version,
		AgentVersion: a.config.Version,
		BootID:       sup.bootID,
		Generation:   generation,
		LastEvent:    last,
		At:           sup.now().UTC(),
		Host:         host,
		Devices:      devices,
		Instances:    instances,
		Inventory:    inventory,
	}, nil
}
