//! `loadgen null-server`: the cheapest server there is, to find a client's own limits.

use std::io;
use std::net::SocketAddr;
use std::thread;

use null_server::{Answer, listener, serve};

use super::exit::{OK, Stop, print};
use crate::cli::units;
use crate::target::Address;

/// Answer every request with the same body, as cheaply as possible.
///
/// What a client reaches against it is the client's own limit, or the link's. Prints its address
/// when it is ready, and serves until it is ended.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Length of each answer's body in bytes
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    body: usize,
    /// CPUs to run on, one pinned thread on each (0,2-3) [default: one thread, not pinned]
    #[arg(long, value_parser = units::cpus, value_name = "LIST")]
    cpus: Option<units::CpuList>,
    /// Allow an address that other machines can reach
    #[arg(long)]
    allow_remote: bool,
}

pub fn main(args: &Args) -> Result<u8, Stop> {
    let fail = |error: io::Error| format!("cannot serve on {}: {error}", args.listen);
    if !Address::Tcp(args.listen).is_local() && !args.allow_remote {
        return Err(Stop::from(format!(
            "--listen {}: other machines may reach that; if they may, give --allow-remote",
            args.listen
        )));
    }
    let answer = Answer::of(args.body).map_err(fail)?;
    let first = listener(args.listen).map_err(fail)?;
    let address = first.local_addr().map_err(fail)?;
    let cpus =
        args.cpus.as_ref().map_or(vec![None], |list| list.0.iter().copied().map(Some).collect());
    let mut listeners = vec![first];
    for _ in 1..cpus.len() {
        listeners.push(listener(address).map_err(fail)?);
    }
    print(format!("http://{address}/\n"))?;
    thread::scope(|scope| {
        let threads: Vec<_> = listeners
            .iter()
            .zip(&cpus)
            .map(|(listener, cpu)| scope.spawn(|| serve(listener, *cpu, &answer)))
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<io::Result<()>>()
    })
    .map_err(fail)?;
    Ok(OK)
}
