-- +goose Up
ALTER TABLE devices ADD COLUMN "layout" text NOT NULL DEFAULT '[]';
