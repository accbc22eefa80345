CREATE TABLE request_keys (
    user_id TEXT NOT NULL,
    route TEXT NOT NULL,
    name TEXT NOT NULL,
    part BIGINT NOT NULL,
    digest TEXT NOT NULL,
    made_json TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, route, name, part)
);
CREATE INDEX request_keys_by_end ON request_keys (expires_at);
