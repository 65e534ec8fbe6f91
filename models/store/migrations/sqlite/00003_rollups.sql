-- +goose Up
-- Ordered by time first: a minute's rows lie together, so that writing them and
-- dropping old ones touches few pages, and no other index is needed. A series is
-- read by looking up each of its times, which are known.
CREATE TABLE rollups (
    "step" integer NOT NULL,
    "at" integer NOT NULL,
    "subject" text NOT NULL,
    "samples" integer NOT NULL,
    "utilization_count" integer NOT NULL,
    "utilization_min" integer,
    "utilization_max" integer,
    "utilization_sum" integer,
    "memory_count" integer NOT NULL,
    "memory_min" integer,
    "memory_max" integer,
    "memory_sum" integer,
    "temperature_count" integer NOT NULL,
    "temperature_min" integer,
    "temperature_max" integer,
    "temperature_sum" integer,
    "power_count" integer NOT NULL,
    "power_min" integer,
    "power_max" integer,
    "power_sum" integer,
    PRIMARY KEY (step, at, subject)
) WITHOUT ROWID;

CREATE TABLE device_events (
    "device_uuid" text NOT NULL,
    "seq" integer NOT NULL,
    "at" integer NOT NULL,
    "node_id" text NOT NULL,
    "state" text NOT NULL,
    "detail" text NOT NULL,
    PRIMARY KEY (device_uuid, seq)
);
CREATE INDEX device_events_node ON device_events (node_id, at);
