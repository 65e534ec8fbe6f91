-- +goose Up
ALTER TABLE devices ADD COLUMN "sharing" text NOT NULL DEFAULT '';
ALTER TABLE devices ADD COLUMN "mixed" numeric NOT NULL DEFAULT false;
