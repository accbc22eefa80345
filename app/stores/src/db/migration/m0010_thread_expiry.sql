ALTER TABLE threads_meta ADD COLUMN keep_latest BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE threads_meta ADD COLUMN forgot_at BIGINT;
DROP INDEX threads_meta_by_end;
CREATE INDEX threads_meta_by_end ON threads_meta ((updated_at + ttl_micros))
    WHERE ttl_micros IS NOT NULL AND (forgot_at IS NULL OR forgot_at <= updated_at);
