-- +goose Up
ALTER TABLE nodes ADD COLUMN "cordoned" boolean NOT NULL DEFAULT false;
