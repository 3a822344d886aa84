#!/bin/sh
# image.sh SUITE FOLDER MIRROR: makes vmlinuz, initrd.gz and disk.img of a clean Debian guest in FOLDER.
#
# The guest has systemd, udev, a guest agent and Debian's full kernel with what a USB serial adapter needs (the cloud kernel has no
# USB); trixie also has Debian's own nodejs, apt, unattended-upgrades, ser2net and systemd-journal-upload. Nothing of posline is in it. As root
# it is made as root, else in a user namespace.
set -eu

case "$1" in
  --inside) ;;
  *)
    here=$(dirname "$(realpath "$0")")
    suite=$1
    mkdir -p "$2"
    POSLINE_VM_FOLDER=$(realpath "$2")
    export POSLINE_VM_FOLDER
    mirror=$3
    # What Depends of the package asks for; on bookworm posline-standalone brings its own Node, and what else needs a package of
    # Debian's is shown on trixie alone.
    case "$suite" in bookworm) more= ;; *) more=,nodejs,apt,unattended-upgrades,ser2net,systemd-journal-remote ;; esac
    exec mmdebstrap --variant=essential --format=null --architectures=amd64 \
      --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      --include="systemd,systemd-sysv,udev,dbus,kmod,procps,iproute2,e2fsprogs,qemu-guest-agent,curl,libstdc++6$more" \
      --customize-hook="'$here/image.sh' --inside \"\$1\"" \
      "$suite" - "$mirror"
    ;;
esac

root=$2
made=$POSLINE_VM_FOLDER
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The kernel, and of its modules those that are needed, with all that they need. They are unpacked, for busybox can't.
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
apt-get -o APT::Sandbox::User=root download -qq "$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')"
dpkg-deb -x linux-image-*.deb kernel
[ -d kernel/usr/lib/modules ] && [ ! -e kernel/lib ] && ln -s usr/lib kernel/lib
version=$(ls kernel/lib/modules)
cp "kernel/boot/vmlinuz-$version" "$made/vmlinuz"
depmod -b kernel "$version"
# Prints the files of a module and of those it needs, in the order of loading; nothing for one that is built in.
files() {
  modprobe -d "$work/kernel" -S "$version" --show-depends "$1" 2>/dev/null | awk '$1 == "insmod" { print $2 }'
}
unpacked() {
  case "$1" in *.xz) xz -dc "$1" ;; *.zst) zstd -dc "$1" ;; *) cat "$1" ;; esac >"$2"
}
modules="$root/lib/modules/$version"
mkdir -p "$modules/kernel"
for name in xhci_pci virtio_console virtio_rng virtio_net usbserial ftdi_sio cdc_acm cp210x ch341 pl2303 tcp_diag veth loop overlay; do
  for file in $(files "$name"); do
    plain=$(basename "$file" | sed 's/\.ko.*/.ko/')
    unpacked "$file" "$modules/kernel/$plain"
  done
done
cp "kernel/lib/modules/$version/modules.builtin" "kernel/lib/modules/$version/modules.order" \
  "kernel/lib/modules/$version/modules.builtin.modinfo" "$modules/"
depmod -b "$root" "$version"

# The first steps of a boot: enough to reach the disk.
mkdir -p initrd/bin initrd/modules
cp /bin/busybox initrd/bin/
for name in virtio_pci virtio_blk crc32c_generic crc32c_cryptoapi ext4; do
  for file in $(files "$name"); do
    plain=$(basename "$file" | sed 's/\.ko.*/.ko/')
    [ -e "initrd/modules/$plain" ] && continue
    unpacked "$file" "initrd/modules/$plain"
    echo "$plain" >>initrd/modules/order
  done
done
cat >initrd/init <<'INIT'
#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /root
$b mount -t devtmpfs d /dev
for m in $($b cat /modules/order); do $b insmod "/modules/$m"; done
n=0
while [ ! -b /dev/vda ] && [ $n -lt 400 ]; do $b usleep 25000; n=$((n + 1)); done
$b mount -t ext4 -o rw,noatime /dev/vda /root || exec $b sh
$b mount --move /dev /root/dev
exec $b switch_root /root /sbin/init
INIT
chmod +x initrd/init
(cd initrd && find . | cpio -o -H newc --quiet | gzip -1) >"$made/initrd.gz"

# The guest: a name, a disk, and nothing that works on its own while a test measures.
echo pos >"$root/etc/hostname"
printf '127.0.0.1 localhost pos\n::1 localhost\n' >"$root/etc/hosts"
echo '/dev/vda / ext4 rw,noatime 0 1' >"$root/etc/fstab"
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  systemd-timesyncd.service getty@tty1.service systemd-pstore.service systemd-hwdb-update.service ldconfig.service \
  systemd-tmpfiles-clean.timer unattended-upgrades.service ser2net.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
# The agent writes each command that it is given into the journal, several a second.
mkdir -p "$root/etc/systemd/system/qemu-guest-agent.service.d"
printf '[Service]\nLogLevelMax=warning\n' >"$root/etc/systemd/system/qemu-guest-agent.service.d/quiet.conf"
: >"$root/etc/machine-id"
# What kept documentation and starts of services out of the image would keep those of the package out, too.
rm -f "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap" "$root/usr/sbin/policy-rc.d"
rm -rf "$root/var/cache/apt" "$root/var/lib/apt/lists"

# What is mounted in it by now, such as /proc, stays out.
cp -ax "$root" "$work/guest"
truncate -s 1200M "$work/disk.img"
mke2fs -q -t ext4 -E lazy_itable_init=1,lazy_journal_init=1 -d "$work/guest" "$work/disk.img"
cp --sparse=always "$work/disk.img" "$made/disk.img"
