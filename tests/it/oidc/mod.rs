//! Sign-in through identity providers: honest ones, ones that lie, and browsers that attack.

mod attacks;
mod browser;
mod honest;
mod lies;
mod provider;
