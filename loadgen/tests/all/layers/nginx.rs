//! A real nginx with TLS and HTTP/2.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::certificates::Authority;

pub const LARGE_BYTES: usize = 1 << 20;
/// Requests that a connection of the impatient server may carry.
pub const PATIENCE: u32 = 20;

pub struct Nginx {
    pub authority: Authority,
    child: Child,
    ports: [u16; 4],
}

impl Nginx {
    pub fn start() -> Nginx {
        let authority = Authority::new();
        let issued = authority.issue("127.0.0.1");
        let folder = authority.folder();
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.join(name), bytes).expect("a file");
        };
        write("server.pem", issued.certificate_pem.as_bytes());
        write("server.key", issued.key_pem.as_bytes());
        write("hello.txt", b"Hello, World!");
        write("large.bin", &large());
        for _ in 0..10 {
            let ports = free_ports();
            write("nginx.conf", config(folder, ports).as_bytes());
            if let Some(child) = started(folder, ports) {
                return Nginx { authority, child, ports };
            }
        }
        let log = std::fs::read_to_string(folder.join("error.log")).unwrap_or_default();
        panic!("nginx does not start: {log}");
    }

    /// HTTP/1.1 over TLS.
    pub fn tls(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.ports[0])
    }

    /// HTTP/2 over TLS.
    pub fn http2(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.ports[1])
    }

    /// HTTP/2 over cleartext.
    pub fn clear(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports[2])
    }

    /// HTTP/2 over cleartext, with few requests for each connection.
    pub fn impatient(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports[3])
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of /large.bin.
pub fn large() -> Vec<u8> {
    (0..LARGE_BYTES).map(|at| (at * 31 % 251) as u8).collect()
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn free_ports() -> [u16; 4] {
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

fn config(folder: &Path, [tls, http2, clear, impatient]: [u16; 4]) -> String {
    let folder = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .concat();
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
         events {{}}
         http {{
             {temporary}
             access_log off; root {folder};
             ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
             keepalive_requests 1000000; client_max_body_size 10m;
             server {{ listen 127.0.0.1:{tls} ssl; location /sink {{ return 204; }} }}
             server {{ listen 127.0.0.1:{http2} ssl http2; location /sink {{ return 204; }} }}
             server {{ listen 127.0.0.1:{clear} http2; }}
             server {{ listen 127.0.0.1:{impatient} http2; keepalive_requests {PATIENCE}; }}
         }}"
    )
}

/// Starts nginx and waits until it listens; `None` when it ended, as when a port was taken.
fn started(folder: &Path, ports: [u16; 4]) -> Option<Child> {
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let mut child = Command::new(program)
        .arg("-p")
        .arg(folder)
        .arg("-c")
        .arg(folder.join("nginx.conf"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nginx must be installed: apt-get install nginx");
    loop {
        if child.try_wait().expect("a child").is_some() {
            return None;
        }
        if ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok()) {
            return Some(child);
        }
        thread::sleep(Duration::from_millis(5));
    }
}
