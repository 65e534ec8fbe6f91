package store

import "sync"

// feed wakes those who wait for a topic to change. It carries no data: the
// woken read again. A wake-up is never lost, but many may be one.
type feed struct {
	mu   sync.Mutex
	subs map[string]map[*Watch]struct{}
}

// Watch is a subscription to topics.
type Watch struct {
	feed   *feed
	topics []string
	wake   chan struct{}

	mu    sync.Mutex
	dirty map[string]struct{}
}

// Watch subscribes to topics such as "account:acc_…" or "node:nod_…". Subscribe
// before the first read, so that no change falls in between. Close it.
func (s *Store) Watch(topics ...string) *Watch {
	w := &Watch{feed: &s.feed, topics: topics, wake: make(chan struct{}, 1), dirty: map[string]struct{}{}}
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.feed.subs == nil {
		s.feed.subs = map[string]map[*Watch]struct{}{}
	}
	for _, t := range topics {
		if s.feed.subs[t] == nil {
			s.feed.subs[t] = map[*Watch]struct{}{}
		}
		s.feed.subs[t][w] = struct{}{}
	}
	return w
}

// C receives a value after topics changed since the last Topics call.
func (w *Watch) C() <-chan struct{} { return w.wake }

// Topics returns which topics changed since the last call.
func (w *Watch) Topics() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]string, 0, len(w.dirty))
	for t := range w.dirty {
		out = append(out, t)
	}
	clear(w.dirty)
	return out
}

// Close ends the subscription.
func (w *Watch) Close() {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	for _, t := range w.topics {
		delete(w.feed.subs[t], w)
		if len(w.feed.subs[t]) == 0 {
			delete(w.feed.subs, t)
		}
	}
}

// Changed notes that what topic names is different after the commit.
func (tx *Tx) Changed(topic string) { tx.changed = append(tx.changed, topic) }

// Notify wakes the watchers of topics about a change that is not in the
// database (a progress, a reading).
func (s *Store) Notify(topics ...string) { s.feed.publish(topics) }

func (f *feed) publish(topics []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range topics {
		for w := range f.subs[t] {
			w.mu.Lock()
			w.dirty[t] = struct{}{}
			w.mu.Unlock()
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}
