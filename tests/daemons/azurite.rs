//! Azurite (npm `azurite`), Microsoft's own imitation of Azure's blob storage: by the path of its program in
//! `ABLATE_AZURITE`.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use super::{ends_with_this_thread, wait_until};

/// A server on loopback with one container.
pub struct Server {
    child: Child,
    /// Its address, with the account.
    pub endpoint: String,
    /// Lets whoever has it read and write, but not list.
    pub token: String,
    _folder: tempfile::TempDir,
}

/// The account, and its key in base 64.
pub const ACCOUNT: &str = "ada";
pub const KEY: &str = "YWRhJ3Mga2V5LCB3aGljaCBvcGVucyBub3RoaW5nIGVsc2U=";

/// Makes the container, and prints a token for it: by what Azure's documentation says, not by our own code.
const MAKE_CONTAINER: &str = r#"
import base64, hashlib, hmac, sys, urllib.parse, urllib.request
from email.utils import formatdate
endpoint, account, key = sys.argv[1:]
def sign(text):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()
date, version = formatdate(usegmt=True), "2021-08-06"
text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{version}\n/{account}/{account}/box\nrestype:container"
request = urllib.request.Request(endpoint + "/box?restype=container", method="PUT", headers={
    "x-ms-date": date, "x-ms-version": version, "Authorization": f"SharedKey {account}:{sign(text)}"})
urllib.request.urlopen(request, timeout=30).read()
expiry = "2999-01-01T00:00:00Z"
text = "\n".join(["rcw", "", expiry, f"/blob/{account}/box", "", "", "", version, "c", "", "", "", "", "", "", ""])
print(urllib.parse.urlencode({"sp": "rcw", "se": expiry, "sv": version, "sr": "c", "sig": sign(text)}))
"#;

impl Server {
    /// Starts it, and waits until it answers.
    pub fn start() -> Option<Server> {
        let named = std::env::var("ABLATE_AZURITE").unwrap_or_default();
        let asked = Command::new(&named).arg("--version").output();
        if !asked.is_ok_and(|answer| answer.status.success()) {
            println!("skipped: there is no Azurite (set ABLATE_AZURITE)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let child = ends_with_this_thread(&named)
            .current_dir(folder.path())
            // Nothing leaves this machine.
            .args(["--disableTelemetry", "--silent", "--location", "."])
            .args(["--blobHost", "127.0.0.1"])
            .args(["--blobPort", &port.to_string()])
            .env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Server {
            child,
            endpoint: format!("http://127.0.0.1:{port}/{ACCOUNT}"),
            token: String::new(),
            _folder: folder,
        };
        wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        let mut python = Command::new("python3");
        python.args(["-c", MAKE_CONTAINER, &server.endpoint, ACCOUNT, KEY]);
        let made = python.output().unwrap();
        assert!(made.status.success(), "{made:?}");
        server.token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
