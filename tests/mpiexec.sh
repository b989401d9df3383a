#!/bin/sh
# mpiexec.sh LAUNCHER [ARGUMENT ...] - starts a launcher of MPI as tests need it: with more ranks than
# cores, and as root. Open MPI wants to be told both, the former by another name in each release, and
# not to look for networks that the ranks of one machine do without.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=^tcp
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # it leaks on its own
case $("$1" --version 2>/dev/null) in
*'(OpenRTE)'*) export OMPI_MCA_rmaps_base_oversubscribe=1 ;; # 4
*'(Open MPI) 5.'*) export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe ;;
*'(Open MPI)'*) export PRTE_MCA_mapby=:oversubscribe ;; # 6
esac
exec "$@"
