-- +goose Up
ALTER TABLE devices ADD COLUMN "profiles" text NOT NULL DEFAULT '[]';
