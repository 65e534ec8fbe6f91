-- +goose Up
ALTER TABLE devices ADD COLUMN "link_group" integer NOT NULL DEFAULT 0;
ALTER TABLE devices ADD COLUMN "numa_node" integer NOT NULL DEFAULT 0;
