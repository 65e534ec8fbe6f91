-- +goose Up
-- Ordered by time first: a minute's rows lie together, so that writing them and
-- dropping old ones touches few pages, and no other index is needed. A series is
-- read by looking up each of its times, which are known.
CREATE TABLE rollups (
    "step" bigint NOT NULL,
    "at" bigint NOT NULL,
    "subject" text NOT NULL,
    "samples" bigint NOT NULL,
    "utilization_count" bigint NOT NULL,
    "utilization_min" bigint,
    "utilization_max" bigint,
    "utilization_sum" bigint,
    "memory_count" bigint NOT NULL,
    "memory_min" bigint,
    "memory_max" bigint,
    "memory_sum" bigint,
    "temperature_count" bigint NOT NULL,
    "temperature_min" bigint,
    "temperature_max" bigint,
    "temperature_sum" bigint,
    "power_count" bigint NOT NULL,
    "power_min" bigint,
    "power_max" bigint,
    "power_sum" bigint,
    PRIMARY KEY (step, at, subject)
);

CREATE TABLE device_events (
    "device_uuid" text NOT NULL,
    "seq" bigint NOT NULL,
    "at" bigint NOT NULL,
    "node_id" text NOT NULL,
    "state" text NOT NULL,
    "detail" text NOT NULL,
    PRIMARY KEY (device_uuid, seq)
);
CREATE INDEX device_events_node ON device_events (node_id, at);
