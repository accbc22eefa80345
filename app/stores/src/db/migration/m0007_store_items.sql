CREATE TABLE store_items (
    user_id TEXT NOT NULL,
    namespace {SORTED} NOT NULL,
    item_key {SORTED} NOT NULL,
    value_json TEXT NOT NULL,
    ttl_micros BIGINT,
    expires_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, namespace, item_key)
);
CREATE INDEX store_items_by_end ON store_items (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE store_vectors (
    user_id TEXT NOT NULL,
    namespace {SORTED} NOT NULL,
    item_key {SORTED} NOT NULL,
    part BIGINT NOT NULL,
    vector {VECTOR} NOT NULL,
    PRIMARY KEY (user_id, namespace, item_key, part),
    FOREIGN KEY (user_id, namespace, item_key) REFERENCES store_items (user_id, namespace, item_key) ON DELETE CASCADE
);
