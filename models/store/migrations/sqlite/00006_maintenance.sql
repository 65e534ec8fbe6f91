-- +goose Up
ALTER TABLE nodes ADD COLUMN "maintenance_from" bigint NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN "maintenance_until" bigint NOT NULL DEFAULT 0;
