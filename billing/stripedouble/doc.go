// Package stripedouble is a local stand-in for Stripe: a stateful HTTP server
// that speaks the part of Stripe's API (version 2023-10-16) that Berth uses,
// with a hosted checkout page of its own and signed webhooks. The same client
// code runs against it and against Stripe; only the address differs.
//
// It owns its state, one append-only file, and nothing else: it imports no other
// package of Berth, and no money ever moves.
//
// What always holds:
//   - What a request answered is on disk before the answer leaves, the events it
//     caused in the same record, so a kill -9 at any line loses nothing that a
//     caller was told.
//   - An idempotency key acts once. Repeating it repeats the answer, also after a
//     restart.
//   - Every event is delivered until the endpoint answers 2xx or three days pass.
//   - It refuses live keys, and every page says that the payments are tests.
//
// The caller listens. Listen on a loopback address only: whoever reaches the
// hosted page can "pay", and the page is protected by nothing but the session's
// unguessable id, as Stripe's is.
//
// Why a file of records and not SQLite: Berth's store links a SQLite driver that
// registers itself as "sqlite", and a second one of the same name ends the
// program at start.
package stripedouble
