CREATE TABLE flow_owners (
    user_id TEXT NOT NULL PRIMARY KEY
);
CREATE TABLE flows (
    user_id TEXT NOT NULL,
    slug TEXT NOT NULL,
    version BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    summary_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, slug)
);
CREATE TABLE flow_versions (
    user_id TEXT NOT NULL,
    slug TEXT NOT NULL,
    version BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    summary_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, slug, version)
);
CREATE INDEX flow_versions_by_content ON flow_versions (user_id, content_hash);
CREATE TABLE flow_contents (
    user_id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    content_json TEXT NOT NULL,
    unused_since BIGINT,
    PRIMARY KEY (user_id, content_hash)
);
CREATE INDEX flow_contents_unused ON flow_contents (unused_since) WHERE unused_since IS NOT NULL;
CREATE TABLE flow_pins (
    thread_id TEXT NOT NULL REFERENCES threads_meta (thread_id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL,
    PRIMARY KEY (thread_id, content_hash)
);
CREATE INDEX flow_pins_by_content ON flow_pins (content_hash);
