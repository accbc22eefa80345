CREATE TABLE channel_lanes (
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    closed_until BIGINT NOT NULL,
    PRIMARY KEY (provider, account, chat)
);
CREATE INDEX channel_lanes_by_end ON channel_lanes (closed_until);
