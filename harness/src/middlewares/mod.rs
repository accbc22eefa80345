//! Middlewares: hooks around an agent's loop, one file each, in an order that is data.
