"""The contents of the package, checked by lintian, readelf and systemd-analyze."""

import gzip
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import package

LARGEST_EXPOSURE = 11  # in tenths, the unit of systemd-analyze --threshold
PROGRAMS = ("bin/conversed", "bin/conversectl", "libexec/conversed/conversed-code")


class PackageCase(unittest.TestCase):
    """The package, unpacked into `tree`."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="conversed-package-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.tree = pathlib.Path(cls.folder.name)
        cls.package = package.find()
        package.run("dpkg-deb", "-R", cls.package, cls.tree)


class Contents(PackageCase):
    def test_lintian_finds_no_error(self):
        command = ["lintian", "--allow-root", "--fail-on", "error"]
        # The default address belongs to no person. A distributor sets its own address.
        if package.field(self.package, "Maintainer").endswith("@localhost>"):
            command += ["--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog"]
        package.run(*command, self.package)

    def test_programs_know_no_variable_that_makes_them_wrong_for_tests(self):
        for program in PROGRAMS:
            code = (self.tree / "usr" / program).read_bytes()
            for variable in (b"CONVERSED_TEST_PLANT", b"CONVERSED_TEST_CHEAP_PASSWORDS"):
                self.assertNotIn(variable, code, program)

    def test_files_are_in_the_places_of_the_fhs(self):
        for path in ("usr/bin/conversed", "usr/bin/conversectl", "usr/libexec/conversed/conversed-code", "etc/conversed/conversed.yaml",
                     "lib/systemd/system/conversed.service", "usr/lib/sysusers.d/conversed.conf",
                     "usr/lib/tmpfiles.d/conversed.conf", "usr/share/man/man8/conversed.8.gz",
                     "usr/share/man/man1/conversectl.1.gz", "usr/share/bash-completion/completions/conversectl",
                     "usr/share/bash-completion/completions/conversed", "usr/share/zsh/vendor-completions/_conversectl",
                     "usr/share/fish/vendor_completions.d/conversectl.fish",
                     "usr/share/doc/conversed/copyright", "usr/share/doc/conversed/operators-handbook.md",
                     "usr/share/doc/conversed/examples/proxy/nginx.conf",
                     "usr/share/doc/conversed/examples/proxy/Caddyfile",
                     "usr/share/doc/conversed/examples/monitoring/alerts.yaml",
                     "usr/share/doc/conversed/examples/monitoring/dashboard.json"):
            self.assertTrue((self.tree / path).is_file(), path)
        conffiles = (self.tree / "DEBIAN" / "conffiles").read_text().split()
        self.assertEqual(conffiles, ["/etc/conversed/conversed.yaml"])
        self.assertEqual(sorted(path.name for path in self.tree.iterdir()), ["DEBIAN", "etc", "lib", "usr"])

    def commands(self, program, path=()):
        """Yields the path of each command in a program's help."""
        text = package.run(self.tree / "usr" / "bin" / program, *path, "--help")
        _, _, listed = text.partition("\nSubcommands:\n")
        for name in re.findall(r"(?m)^  ([a-z][a-z-]*) ", listed):
            yield (*path, name)
            yield from self.commands(program, (*path, name))

    def test_manual_pages_have_all_commands_and_no_warnings(self):
        for program, section in (("conversed", 8), ("conversectl", 1)):
            page = self.tree / f"usr/share/man/man{section}/{program}.{section}.gz"
            text = gzip.decompress(page.read_bytes()).decode()
            commands = list(self.commands(program))
            self.assertTrue(commands)
            for path in commands:
                self.assertIn(f".SS {' '.join(path)}".replace("-", "\\-"), text)
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(pathlib.Path("/usr/share/bash-completion/bash_completion").exists(),
                         "bash-completion is not installed")
    def test_completion_has_the_commands_and_options_of_the_program(self):
        def completed(name, *words):
            script = ('. /usr/share/bash-completion/bash_completion; . "$1"; shift; COMP_WORDS=("$@"); '
                      "COMP_CWORD=$(($# - 1)); COMP_LINE=\"$*\"; COMP_POINT=${#COMP_LINE}; "
                      f"_{name}; "
                      "printf '%s\\n' \"${COMPREPLY[@]}\"")
            file = self.tree / "usr/share/bash-completion/completions" / name
            return set(package.run("bash", "-c", script, "bash", file, self.tree / "usr" / "bin" / name, *words).split())

        top = {path[0] for path in self.commands("conversectl") if len(path) == 1}
        self.assertEqual(completed("conversectl", ""), top)
        self.assertEqual(completed("conversectl", "--json", "apikey", "c"), {"create"})
        self.assertIn("--name", completed("conversectl", "apikey", "create", "--"))
        self.assertEqual(completed("conversed", "in"), {"init"})


class Binaries(PackageCase):
    def readelf(self, program, *options):
        return package.run("readelf", "-W", *options, self.tree / "usr" / program)

    def test_programs_are_position_independent_with_early_bound_read_only_relocations(self):
        for program in PROGRAMS:
            self.assertRegex(self.readelf(program, "-h"), r"Type: +DYN")
            segments = self.readelf(program, "-l")
            self.assertIn("GNU_RELRO", segments)
            self.assertRegex(segments, r"GNU_STACK +\S+ \S+ \S+ \S+ \S+ RW +\S+")
            dynamic = self.readelf(program, "-d")
            self.assertRegex(dynamic, r"FLAGS_1.*NOW.*PIE")

    def test_stacks_and_library_calls_are_guarded(self):
        for program in PROGRAMS:
            imported = self.readelf(program, "--dyn-syms")
            self.assertIn("__stack_chk_fail", imported)
            self.assertRegex(imported, r"__[a-z]+_chk@GLIBC")

    def test_functions_begin_with_a_landing_for_indirect_calls(self):
        # The ELF file has no property for this: Debian's start-up objects of the C library lack it, so the
        # linker drops it. The test counts landings instead.
        if "X86-64" not in self.readelf("bin/conversed", "-h"):
            self.skipTest("only x86-64 has endbr64")
        for program in PROGRAMS:
            code = package.run("objdump", "-d", "--no-show-raw-insn", "-j", ".text",
                               self.tree / "usr" / program)
            landings, calls = code.count("endbr64"), len(re.findall(r"\sret\b", code))
            self.assertGreater(landings, calls / 4, program)


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
class Unit(PackageCase):
    def test_its_exposure_is_small(self):
        package.run("systemd-analyze", "security", "--offline=true", f"--threshold={LARGEST_EXPOSURE}",
                    self.tree / "lib/systemd/system/conversed.service")

    def test_each_hardening_option_that_is_off_has_its_reason(self):
        unit = (self.tree / "lib/systemd/system/conversed.service").read_text()
        table = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                                self.tree / "lib/systemd/system/conversed.service"], capture_output=True, text=True)
        off = re.findall(r"(?m)^✗ (\w+)=", table.stdout)
        self.assertTrue(off)
        for option in set(off) - {"DeviceAllow"}:  # ProtectClock= adds the clock's device
            self.assertIn(option, unit)


if __name__ == "__main__":
    unittest.main()
