-- +goose Up
ALTER TABLE devices ADD COLUMN "sharing" text NOT NULL DEFAULT '';
ALTER TABLE devices ADD COLUMN "mixed" boolean NOT NULL DEFAULT false;
