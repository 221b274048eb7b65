//! Ed25519 keys: the user's own, and those of people whose results the user takes. Both are files in the user's
//! settings folder; the private key is readable by its owner alone and never printed.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

/// Whose results these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

const PREFIX: &str = "ed25519:";

impl PublicKey {
    /// From `ed25519:` and 64 hexadecimal digits.
    pub fn read(text: &str) -> Option<PublicKey> {
        Some(PublicKey(unhex(text.strip_prefix(PREFIX)?)?))
    }

    /// For names of files.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Whether a signature of this key belongs to these bytes.
    pub fn signed(&self, bytes: &[u8], signature: &str) -> bool {
        let Some(signature) = unhex::<64>(signature) else {
            return false;
        };
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(bytes, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.hex())
    }
}

/// The user's key.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The half that others may know.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }

    /// The signature.
    pub fn sign_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.0.sign(bytes).as_ref().to_vec()
    }

    /// The signature, in hexadecimal digits.
    pub fn sign(&self, bytes: &[u8]) -> String {
        hex(&self.sign_bytes(bytes))
    }
}

/// Somebody whose results are taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signer {
    /// What the user calls them.
    pub name: String,
    /// Their key, as [`PublicKey`] prints it.
    pub key: String,
    /// Whether results of outside programs (`command`) are taken too.
    #[serde(default)]
    pub commands: bool,
    /// Whether nothing of this key is taken any more.
    #[serde(default)]
    pub revoked: bool,
}

/// The user's keys and whom the user trusts.
pub struct Keys {
    folder: PathBuf,
    /// In the order of the file.
    pub signers: Vec<Signer>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    #[serde(default)]
    signer: Vec<Signer>,
}

impl Keys {
    /// Those in the user's settings folder: `ABLATE_CONFIG`, or `ablate` in the system's folder for settings.
    pub fn open() -> Result<Keys, String> {
        let named = std::env::var_os("ABLATE_CONFIG").map(PathBuf::from);
        let usual = || dirs::config_dir().map(|folder| folder.join("ablate"));
        let folder = named
            .or_else(usual)
            .ok_or("there is no folder for settings: set ABLATE_CONFIG")?;
        let path = folder.join("trusted.toml");
        let signers = match fs::read_to_string(&path) {
            Ok(text) => {
                let file: TrustFile = toml::from_str(&text)
                    .map_err(|error| format!("`{}`: {}", path.display(), error.message()))?;
                file.signer
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
        };
        for signer in &signers {
            if PublicKey::read(&signer.key).is_none() {
                let path = path.display();
                return Err(format!("`{path}`: `{}` is not a public key", signer.key));
            }
        }
        Ok(Keys { folder, signers })
    }

    /// The user's own key, if there is one.
    pub fn own(&self) -> Result<Option<SigningKey>, String> {
        let path = self.private();
        match fs::read_to_string(&path) {
            Ok(text) => {
                let seed = unhex::<32>(text.trim());
                let pair = seed.and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
                let wrong = || format!("`{}` does not hold a key", path.display());
                pair.map(|pair| Some(SigningKey(pair))).ok_or_else(wrong)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read `{}`: {error}", path.display())),
        }
    }

    /// The user's own key to sign with: one that was revoked is refused.
    pub fn signing(&self) -> Result<Option<SigningKey>, String> {
        let own = self.own()?;
        match own {
            Some(own) if self.is_revoked(&own.public().to_string()) => {
                Err("your key is revoked: `ablate key new` makes another one".to_owned())
            }
            own => Ok(own),
        }
    }

    /// Whether nothing is believed that this key has signed.
    pub fn is_revoked(&self, key: &str) -> bool {
        let mut same = self.signers.iter().filter(|signer| signer.key == key);
        same.any(|signer| signer.revoked)
    }

    /// A new key of the user's own; there must be none, or one that was revoked, which is put aside.
    pub fn create(&self) -> Result<SigningKey, String> {
        if let Some(own) = self.own()?
            && self.is_revoked(&own.public().to_string())
        {
            let aside = format!("private-key.revoked-{}", &own.public().hex()[..16]);
            let moved = fs::rename(self.private(), self.folder.join(aside));
            moved.map_err(|error| format!("cannot put the revoked key aside: {error}"))?;
        }
        let mut seed = [0; 32];
        let random = SystemRandom::new().fill(&mut seed);
        random.map_err(|_| "the system has no random numbers".to_owned())?;
        let path = self.private();
        let written =
            fs::create_dir_all(&self.folder).and_then(|()| write_private(&path, &hex(&seed)));
        written.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => format!("`{}` exists already", path.display()),
            _ => format!("cannot write `{}`: {error}", path.display()),
        })?;
        self.own()?
            .ok_or_else(|| "the new key is not there".to_owned())
    }

    /// Writes down whom the user trusts.
    pub fn save(&self) -> Result<(), String> {
        let path = self.folder.join("trusted.toml");
        let file = TrustFile {
            signer: self.signers.clone(),
        };
        let text = toml::to_string(&file).map_err(|error| error.to_string())?;
        let written = fs::create_dir_all(&self.folder).and_then(|()| {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(text.as_bytes())?;
            file.persist(&path)?;
            Ok(())
        });
        written.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }

    /// All whose results are taken, the user first: their keys, and whether those of commands are.
    pub fn trusted(&self) -> Result<Vec<Trusted>, String> {
        let own = self.own()?.map(|key| Trusted {
            name: "you".to_owned(),
            key: key.public(),
            commands: true,
        });
        let others = self.signers.iter().filter_map(|signer| {
            Some(Trusted {
                name: signer.name.clone(),
                key: PublicKey::read(&signer.key)?,
                commands: signer.commands,
            })
        });
        let mut all: Vec<Trusted> = Vec::new();
        for one in own.into_iter().chain(others) {
            if !self.is_revoked(&one.key.to_string())
                && all.iter().all(|known| known.key != one.key)
            {
                all.push(one);
            }
        }
        Ok(all)
    }

    /// What the user calls the owner of a key.
    pub fn name_of(&self, key: &str) -> Option<String> {
        let own = self
            .own()
            .ok()
            .flatten()
            .map(|own| own.public().to_string());
        match own.as_deref() == Some(key) {
            true => Some("you".to_owned()),
            false => {
                let mut same = self.signers.iter().filter(|signer| signer.key == key);
                same.next().map(|signer| signer.name.clone())
            }
        }
    }

    fn private(&self) -> PathBuf {
        self.folder.join("private-key")
    }
}

/// Somebody whose results are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Trusted {
    /// What the user calls them.
    pub name: String,
    /// Their key.
    pub key: PublicKey,
    /// Whether results of outside programs are taken too.
    pub commands: bool,
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{text}")?;
    file.sync_all()
}

/// Hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
