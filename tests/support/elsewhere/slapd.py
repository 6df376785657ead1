"""OpenLDAP's slapd as a process of its own, in a folder of its own, with a certificate of its own authority."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from dev.lab.ports import free_port
from tests.support.processes.proven_domain import certificate

BASE = "dc=example,dc=org"
READER, READER_PASSWORD = f"cn=reader,{BASE}", "reads:only"
PASSWORD = "s3cret påssword"
UUID = "0f6d2e6a-5d5f-4d5a-9c0b-8a1c6f1e2b3c"
_PATIENCE = 20.0
_SCHEMA = "/etc/ldap/schema"
_CONFIG = """
include {schema}/core.schema
include {schema}/cosine.schema
include {schema}/inetorgperson.schema
include {schema}/dyngroup.schema
attributetype ( 1.2.840.113556.1.4.8 NAME 'userAccountControl' SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.2 NAME 'objectGUID' SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
objectclass ( 1.2.840.113556.1.5.9999 NAME 'adUser' SUP top AUXILIARY MAY ( userAccountControl $ objectGUID ) )
pidfile {folder}/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload dynlist
TLSCertificateFile {pem}
TLSCertificateKeyFile {pem}
database mdb
suffix "{base}"
directory {folder}/data
overlay dynlist
dynlist-attrset groupOfURLs memberURL member+memberOf@groupOfNames
access to attrs=userPassword by anonymous auth by * none
access to * by dn="{reader}" read by self read by anonymous auth by * none
"""
_PEOPLE = """
dn: {base}
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: {reader}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: {reader_password}

dn: ou=people,{base}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{base}
objectClass: organizationalUnit
ou: groups

dn: uid=ada,ou=people,{base}
objectClass: inetOrgPerson
objectClass: adUser
uid: ada
cn: Ada Lovelace
sn: Lovelace
mail: ada@elsewhere.example
userPassword: {password}
entryUUID: {uuid}
userAccountControl: 512

dn: uid=gone,ou=people,{base}
objectClass: inetOrgPerson
objectClass: adUser
uid: gone
cn: Gone
sn: Gone
mail: gone@elsewhere.example
userPassword: {password}
userAccountControl: 514

dn: uid=twin1,ou=people,{base}
objectClass: inetOrgPerson
uid: twin1
cn: Twin
sn: Twin
employeeType: twin
mail: twin@elsewhere.example
userPassword: {password}

dn: uid=twin2,ou=people,{base}
objectClass: inetOrgPerson
uid: twin2
cn: Twin
sn: Twin
employeeType: twin
mail: twin@elsewhere.example
userPassword: {password}

dn: cn=staff,ou=groups,{base}
objectClass: groupOfNames
cn: staff
member: uid=ada,ou=people,{base}

dn: cn=empty,ou=groups,{base}
objectClass: groupOfNames
cn: empty
member: cn=reader,{base}
"""


class Slapd:
    """A directory that listens on two ports of this machine: in plain text with StartTLS, and with TLS."""

    def __init__(self, folder: Path, program: str) -> None:
        self.folder, self._program = folder, program
        self.authority = folder / "ca.pem"
        self.plain, self.secure = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Writes the configuration and loads the people."""
        certificate(self.folder, "localhost")
        both = (self.folder / "pem").read_text()
        self.authority.write_text(both[both.index("-----BEGIN CERTIFICATE") :])
        known = {"base": BASE, "reader": READER, "folder": self.folder, "schema": _SCHEMA, "uuid": UUID}
        config, people = self.folder / "slapd.conf", self.folder / "people.ldif"
        config.write_text(_CONFIG.format(**known, pem=self.folder / "pem"))
        people.write_text(_PEOPLE.format(**known, password=PASSWORD, reader_password=READER_PASSWORD), "utf-8")
        (self.folder / "data").mkdir()
        command = [self._program, "-T", "add", "-f", str(config), "-l", str(people)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        urls = f"ldap://127.0.0.1:{self.plain} ldaps://localhost:{self.secure}"
        command = [self._program, "-d", "0", "-f", str(self.folder / "slapd.conf"), "-h", urls]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ends = time.monotonic() + _PATIENCE
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.plain), 1):
                return
            assert self._process.poll() is None, "slapd ended"
            assert time.monotonic() < ends, "slapd does not answer"
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def slapd(folder: Path) -> Iterator[Slapd]:
    """A running directory."""
    program = shutil.which("slapd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None:
        pytest.skip("no slapd on this machine")
    made = Slapd(folder, program)
    made.prepare()
    try:
        made.start()
        yield made
    finally:
        made.stop()
