//! moto (PyPI `moto[server]`), an imitation of AWS: by the path of a Python that has it in `ABLATE_MOTO_PYTHON`. Its
//! S3 believes everybody until it is told not to, and then knows users and what they may do.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use super::{ends_with_this_thread, wait_until};

/// A server on loopback with an empty bucket `bucket`.
pub struct Moto {
    child: Child,
    python: String,
    /// Its address.
    pub endpoint: String,
    /// Its port.
    pub port: u16,
}

/// Makes users and then asks everybody who they are. Prints a key and its secret for each.
const USERS: &str = r#"
import json, sys, urllib.request, boto3
at = sys.argv[1]
asks = dict(endpoint_url=at, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
iam = boto3.client("iam", **asks)
rules = {
    "all": ["s3:*"],
    "reader": ["s3:GetObject"],
    "nobody": [],
}
for name, actions in rules.items():
    iam.create_user(UserName=name)
    if actions:
        statement = [{"Effect": "Allow", "Action": actions, "Resource": "*"}]
        policy = json.dumps({"Version": "2012-10-17", "Statement": statement})
        iam.put_user_policy(UserName=name, PolicyName="rule", PolicyDocument=policy)
    made = iam.create_access_key(UserName=name)["AccessKey"]
    print(made["AccessKeyId"], made["SecretAccessKey"])
asked = urllib.request.Request(at + "/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"})
urllib.request.urlopen(asked)
"#;

/// A user: the name of the key, and its secret.
pub type User = (String, String);

impl Moto {
    /// Starts it, waits until it answers, and makes a bucket.
    pub fn start() -> Option<Moto> {
        let python = std::env::var("ABLATE_MOTO_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let asked = Command::new(&python)
            .args(["-c", "import moto.server, boto3"])
            .output();
        if !asked.is_ok_and(|answer| answer.status.success()) {
            println!("skipped: there is no moto (set ABLATE_MOTO_PYTHON)");
            return None;
        }
        let port = {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let child = ends_with_this_thread(&python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p"])
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Moto {
            child,
            python,
            endpoint: format!("http://127.0.0.1:{port}"),
            port,
        };
        wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        moto.ask(
            "import boto3, sys\n\
             boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1', aws_access_key_id='x', \
             aws_secret_access_key='x').create_bucket(Bucket='bucket')",
        );
        Some(moto)
    }

    /// From now on it asks who somebody is: one who may do all, one who may only read objects, one who may do nothing.
    pub fn users(&self) -> [User; 3] {
        let printed = self.ask(USERS);
        let mut lines = printed.lines().map(|line| {
            let (key, secret) = line.split_once(' ').unwrap();
            (key.to_owned(), secret.to_owned())
        });
        std::array::from_fn(|_| lines.next().unwrap())
    }

    /// What a program in Python prints, which is given the address.
    fn ask(&self, program: &str) -> String {
        let mut command = Command::new(&self.python);
        let said = command.args(["-c", program, &self.endpoint]).output();
        let said = said.unwrap();
        let complaint = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{complaint}");
        String::from_utf8(said.stdout).unwrap()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
