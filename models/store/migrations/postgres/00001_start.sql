-- +goose Up
CREATE TABLE users (
    "id" text NOT NULL,
    "email" text NOT NULL,
    "name" text NOT NULL,
    "password_hash" text NOT NULL,
    "operator" boolean NOT NULL,
    "created_at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX users_email ON users (email);

CREATE TABLE sessions (
    "id_hash" text NOT NULL,
    "user_id" text NOT NULL,
    "account_id" text NOT NULL,
    "user_agent" text NOT NULL,
    "address" text NOT NULL,
    "created_at" bigint NOT NULL,
    "seen_at" bigint NOT NULL,
    "expires_at" bigint NOT NULL,
    PRIMARY KEY (id_hash)
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE tokens (
    "id" text NOT NULL,
    "user_id" text NOT NULL,
    "account_id" text NOT NULL,
    "name" text NOT NULL,
    "hash" text NOT NULL,
    "created_at" bigint NOT NULL,
    "last_used_at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX tokens_hash ON tokens (hash);
CREATE INDEX tokens_account ON tokens (account_id);

CREATE TABLE accounts (
    "id" text NOT NULL,
    "name" text NOT NULL,
    "currency" text NOT NULL,
    "time_zone" text NOT NULL,
    "stripe_customer" text NOT NULL,
    "frozen" boolean NOT NULL,
    "created_at" bigint NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE members (
    "account_id" text NOT NULL,
    "user_id" text NOT NULL,
    "role" text NOT NULL,
    PRIMARY KEY (account_id, user_id)
);
CREATE INDEX members_user ON members (user_id);

CREATE TABLE ledger_accounts (
    "code" text NOT NULL,
    "currency" text NOT NULL,
    "balance" bigint NOT NULL,
    "held" bigint NOT NULL,
    "accrued" bigint NOT NULL,
    "version" bigint NOT NULL,
    PRIMARY KEY (code)
);

CREATE TABLE transfers (
    "id" text NOT NULL,
    "key" text NOT NULL,
    "kind" text NOT NULL,
    "hash" text NOT NULL,
    "reason" text NOT NULL,
    "at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX transfers_key ON transfers (key);

CREATE TABLE entries (
    "id" text NOT NULL,
    "transfer_id" text NOT NULL,
    "account_code" text NOT NULL,
    "version" bigint NOT NULL,
    "amount" bigint NOT NULL,
    "balance_after" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX entries_version ON entries (account_code, version);
CREATE INDEX entries_transfer ON entries (transfer_id);

CREATE TABLE holds (
    "ref" text NOT NULL,
    "account_id" text NOT NULL,
    "amount" bigint NOT NULL,
    "price_per_hour" bigint NOT NULL,
    "state" text NOT NULL,
    "created_at" bigint NOT NULL,
    "expires_at" bigint NOT NULL,
    PRIMARY KEY (ref)
);
CREATE INDEX holds_account ON holds (account_id, state);
CREATE INDEX holds_expiry ON holds (state, expires_at);

CREATE TABLE topups (
    "id" text NOT NULL,
    "account_id" text NOT NULL,
    "user_id" text NOT NULL,
    "amount" bigint NOT NULL,
    "currency" text NOT NULL,
    "state" text NOT NULL,
    "reason" text NOT NULL,
    "client_key" text NOT NULL,
    "session_id" text NOT NULL,
    "checkout_url" text NOT NULL,
    "payment_intent" text NOT NULL,
    "return_url" text NOT NULL,
    "expires_at" bigint NOT NULL,
    "created_at" bigint NOT NULL,
    "changed_at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX topups_client_key ON topups (account_id, client_key) WHERE client_key <> '';
CREATE UNIQUE INDEX topups_session ON topups (session_id) WHERE session_id <> '';
CREATE INDEX topups_account ON topups (account_id, id);
CREATE INDEX topups_state ON topups (state);
CREATE INDEX topups_intent ON topups (payment_intent);

CREATE TABLE stripe_events (
    "id" text NOT NULL,
    "type" text NOT NULL,
    "object_id" text NOT NULL,
    "created_at" bigint NOT NULL,
    "payload" bytea NOT NULL,
    "received_at" bigint NOT NULL,
    "processed_at" bigint NOT NULL,
    "attempts" bigint NOT NULL,
    "next_at" bigint NOT NULL,
    "error" text NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX stripe_events_pending ON stripe_events (processed_at, next_at);

CREATE TABLE usage_spans (
    "id" text NOT NULL,
    "instance_id" text NOT NULL,
    "account_id" text NOT NULL,
    "run" bigint NOT NULL,
    "instance_name" text NOT NULL,
    "sku" text NOT NULL,
    "billing_mode" text NOT NULL,
    "price_per_hour" bigint NOT NULL,
    "currency" text NOT NULL,
    "state" text NOT NULL,
    "start_at" bigint NOT NULL,
    "end_at" bigint NOT NULL,
    "cap_seconds" bigint NOT NULL,
    "cursor" bigint NOT NULL,
    "charged" bigint NOT NULL,
    "posted" bigint NOT NULL,
    "posted_to" bigint NOT NULL,
    "invoiced_to" bigint NOT NULL,
    "reported" bigint NOT NULL,
    "close_reason" text NOT NULL,
    "updated_at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX usage_spans_account ON usage_spans (account_id, state);
CREATE INDEX usage_spans_instance ON usage_spans (instance_id);
CREATE INDEX usage_spans_start ON usage_spans (account_id, start_at);
CREATE INDEX usage_spans_uninvoiced ON usage_spans (account_id) WHERE "cursor" > "invoiced_to";
CREATE INDEX usage_spans_unposted ON usage_spans (account_id) WHERE "charged" > "posted";

CREATE TABLE prices (
    "id" text NOT NULL,
    "sku" text NOT NULL,
    "billing_mode" text NOT NULL,
    "price_per_hour" bigint NOT NULL,
    "currency" text NOT NULL,
    "effective_at" bigint NOT NULL,
    "created_by" text NOT NULL,
    "created_at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX prices_at ON prices (sku, billing_mode, effective_at);

CREATE TABLE invoices (
    "id" text NOT NULL,
    "account_id" text NOT NULL,
    "number" text NOT NULL,
    "state" text NOT NULL,
    "currency" text NOT NULL,
    "period_start" bigint NOT NULL,
    "period_end" bigint NOT NULL,
    "total" bigint NOT NULL,
    "carry" bigint NOT NULL,
    "document" bytea NOT NULL,
    "pdf_hash" text NOT NULL,
    "created_at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX invoices_number ON invoices (number);
CREATE UNIQUE INDEX invoices_period ON invoices (account_id, period_end);

CREATE TABLE invoiced_parts (
    "span_id" text NOT NULL,
    "from_seconds" bigint NOT NULL,
    "to_seconds" bigint NOT NULL,
    "invoice_id" text NOT NULL,
    "amount" bigint NOT NULL,
    PRIMARY KEY (span_id, from_seconds)
);
CREATE INDEX invoiced_parts_invoice ON invoiced_parts (invoice_id);

CREATE TABLE counters (
    "series" text NOT NULL,
    "next" bigint NOT NULL,
    PRIMARY KEY (series)
);

CREATE TABLE nodes (
    "id" text NOT NULL,
    "name" text NOT NULL,
    "public_key" bytea NOT NULL,
    "state" text NOT NULL,
    "generation" bigint NOT NULL,
    "event_seq" bigint NOT NULL,
    "boot_id" text NOT NULL,
    "agent_version" text NOT NULL,
    "host" bytea NOT NULL,
    "clock_skew_ms" bigint NOT NULL,
    "seen_at" bigint NOT NULL,
    "created_at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX nodes_name ON nodes (name);
CREATE UNIQUE INDEX nodes_key ON nodes (public_key);

CREATE TABLE devices (
    "uuid" text NOT NULL,
    "node_id" text NOT NULL,
    "index" bigint NOT NULL,
    "model" text NOT NULL,
    "name" text NOT NULL,
    "memory_mib" bigint NOT NULL,
    "state" text NOT NULL,
    "detail" text NOT NULL,
    "mig" boolean NOT NULL,
    "slices" text NOT NULL,
    PRIMARY KEY (uuid)
);
CREATE INDEX devices_node ON devices (node_id);

CREATE TABLE leases (
    "id" text NOT NULL,
    "instance_id" text NOT NULL,
    "account_id" text NOT NULL,
    "node_id" text NOT NULL,
    "device_uuid" text NOT NULL,
    "profile" text NOT NULL,
    "start" bigint NOT NULL,
    "size" bigint NOT NULL,
    "memory_mib" bigint NOT NULL,
    "created_at" bigint NOT NULL,
    "released_at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX leases_instance ON leases (instance_id, released_at);
CREATE INDEX leases_device ON leases (device_uuid, released_at);

CREATE TABLE lease_units (
    "device_uuid" text NOT NULL,
    "unit" bigint NOT NULL,
    "lease_id" text NOT NULL,
    PRIMARY KEY (device_uuid, unit)
);
CREATE INDEX lease_units_lease ON lease_units (lease_id);

CREATE TABLE join_tokens (
    "hash" text NOT NULL,
    "created_by" text NOT NULL,
    "created_at" bigint NOT NULL,
    "expires_at" bigint NOT NULL,
    "used_at" bigint NOT NULL,
    "node_id" text NOT NULL,
    PRIMARY KEY (hash)
);

CREATE TABLE instances (
    "id" text NOT NULL,
    "account_id" text NOT NULL,
    "created_by" text NOT NULL,
    "node_id" text NOT NULL,
    "name" text NOT NULL,
    "sku" text NOT NULL,
    "billing_mode" text NOT NULL,
    "price_per_hour" bigint NOT NULL,
    "currency" text NOT NULL,
    "image" text NOT NULL,
    "command" text NOT NULL,
    "env" text NOT NULL,
    "startup_script" text NOT NULL,
    "disk_gib" bigint NOT NULL,
    "milli_cpu" bigint NOT NULL,
    "memory_mib" bigint NOT NULL,
    "state" text NOT NULL,
    "reason" text NOT NULL,
    "detail" text NOT NULL,
    "why" text NOT NULL,
    "want" text NOT NULL,
    "run" bigint NOT NULL,
    "paid_seconds" bigint NOT NULL,
    "pull_done" bigint NOT NULL,
    "pull_total" bigint NOT NULL,
    "client_key" text NOT NULL,
    "client_hash" text NOT NULL,
    "created_at" bigint NOT NULL,
    "requested_at" bigint NOT NULL,
    "changed_at" bigint NOT NULL,
    "running_at" bigint NOT NULL,
    "ended_at" bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX instances_client_key ON instances (account_id, client_key) WHERE client_key <> '';
CREATE INDEX instances_account ON instances (account_id, id);
CREATE UNIQUE INDEX instances_name ON instances (account_id, name) WHERE state <> 'terminated';
CREATE INDEX instances_node ON instances (node_id, state);

CREATE TABLE instance_events (
    "instance_id" text NOT NULL,
    "seq" bigint NOT NULL,
    "at" bigint NOT NULL,
    "kind" text NOT NULL,
    "from_state" text NOT NULL,
    "to_state" text NOT NULL,
    "run" bigint NOT NULL,
    "reason" text NOT NULL,
    PRIMARY KEY (instance_id, seq)
);

-- +goose StatementBegin
CREATE FUNCTION never_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '% are never changed: post a correction', TG_TABLE_NAME; END $$;
-- +goose StatementEnd
CREATE TRIGGER transfers_immutable BEFORE UPDATE OR DELETE ON transfers FOR EACH ROW EXECUTE FUNCTION never_changed();
CREATE TRIGGER entries_immutable BEFORE UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION never_changed();
