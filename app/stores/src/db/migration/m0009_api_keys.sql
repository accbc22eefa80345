CREATE TABLE api_keys (
    key_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    name TEXT,
    hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX api_keys_by_user ON api_keys (user_id);
