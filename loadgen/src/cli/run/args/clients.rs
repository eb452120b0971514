//! Flags of where connections come from and go to.

use crate::cli::units::{self, Sources};
use crate::order::ConnectTo;

#[derive(Debug, clap::Args)]
pub struct ClientFlags {
    /// Local addresses to connect from, in turn: 127.0.0.2 or 127.0.0.2-127.0.0.9; may be
    /// repeated [default: the kernel's choice; for each 8000 connections to 127.0.0.0/8 one of its
    /// addresses]
    #[arg(long = "source", value_name = "ADDRESS", value_parser = units::sources)]
    pub sources: Vec<Sources>,
    /// Connections held open next to the load: each sends the first request once, when it opens,
    /// and then rests; they are counted apart
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub idle_connections: u32,
    /// Connections next to the load that read slowly; they are counted apart
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub slow_readers: u32,
    /// What each slow reader reads, in bytes per second [default: 1000]
    #[arg(long, value_name = "BYTES_PER_SECOND",
          requires = "slow_readers", value_parser = clap::value_parser!(u32).range(1..))]
    pub slow_rate: Option<u32>,
    /// Connect elsewhere than where the URL says, as curl does: HOST:PORT:TO_HOST:TO_PORT; an empty
    /// part is any, or the same; Host and TLS keep the URL's name; may be repeated [default: none]
    #[arg(long, value_name = "RULE", value_parser = units::connect_to)]
    pub connect_to: Vec<ConnectTo>,
    /// Addresses for a host and port, which connections take in turn: HOST:PORT:ADDRESS[,ADDRESS];
    /// may be repeated [default: the system's, those of the first one's kind in turn]
    #[arg(long, value_name = "RULE", value_parser = units::resolve)]
    pub resolve: Vec<ConnectTo>,
    /// Connect to IPv4 addresses only [default: to any]
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Connect to IPv6 addresses only [default: to any]
    #[arg(short = '6', long)]
    pub ipv6: bool,
    /// Allow targets that are not on this machine [default: refuse them]
    #[arg(long)]
    pub allow_remote: bool,
}
