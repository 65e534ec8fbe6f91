-- +goose Up
ALTER TABLE nodes ADD COLUMN "cordoned" numeric NOT NULL DEFAULT false;
