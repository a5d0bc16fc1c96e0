/* The console over ssh (to this machine), in tmux and in screen, each where it is installed.
 * test-timeout: 180 */
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/support/small_run.h"
#include "tests/support/stream.h"
#include "tests/support/vt.h"

static char folder[512], record[600];

/* What must be on the screen, and that it leaves when asked. */
static void look_and_leave(struct vt *vt, const char *after) {
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "cross-entropy", 20));
    assert_true(vt_wait_text(vt, "step 300", 10));
    assert_true(vt_wait_text(vt, "average", 10));
    vt_keys(vt, "7");
    assert_true(vt_wait_text(vt, "what happened", 10));
    vt_keys(vt, "1");
    assert_true(vt_wait_text(vt, "cross-entropy", 10));
    vt_resize(vt, 40, 120);
    assert_true(vt_wait_text(vt, "gradient norm", 10));
    vt_resize(vt, 24, 80);
    assert_true(vt_wait_no_text(vt, "gradient norm", 10));
    assert_true(vt_wait_text(vt, "cross-entropy", 10));
    vt_keys(vt, "q");
    if (after)
        assert_true(vt_wait_text(vt, after, 10));
}

/* ---- ssh: a server of our own on a port of the loopback */

static pid_t server;

static int free_port(void) {
    return 20000 + (int)(getpid() % 20000);
}

static bool start_server(int port) {
    if (access("/usr/sbin/sshd", X_OK) || access("/usr/bin/ssh", X_OK) || access("/usr/bin/ssh-keygen", X_OK))
        return false;
    if (shell("ssh-keygen -q -t ed25519 -N '' -f %s/host && ssh-keygen -q -t ed25519 -N '' -f %s/user && "
              "cp %s/user.pub %s/authorized",
              folder, folder, folder, folder))
        return false;
    if (getuid() == 0)
        mkdir("/run/sshd", 0755);
    shell("printf 'Port %d\\nListenAddress 127.0.0.1\\nHostKey %s/host\\nAuthorizedKeysFile %s/authorized\\n"
          "StrictModes no\\nUsePAM no\\nPidFile none\\nPermitRootLogin yes\\nPasswordAuthentication no\\n"
          "AcceptEnv LC_* TERM\\n' >%s/sshd_config",
          port, folder, folder, folder);
    server = fork();
    if (server == 0) {
        char config[600], log[600];
        snprintf(config, sizeof config, "%s/sshd_config", folder);
        snprintf(log, sizeof log, "%s/sshd.log", folder);
        execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-f", config, "-E", log, (char *)NULL);
        _exit(127);
    }
    return server > 0;
}

static void over_ssh(void **state) {
    (void)state;
    int port = free_port();
    if (!start_server(port)) {
        printf("ssh is not tried: no openssh-server\n");
        return;
    }
    struct passwd *me = getpwuid(getuid());
    char ssh[2048], command[4096];
    snprintf(ssh, sizeof ssh,
             "ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o "
             "IdentitiesOnly=yes -o ConnectTimeout=5 -i %s/user -p %d %s@127.0.0.1",
             folder, port, me ? me->pw_name : "root");
    /* the server is there when it answers */
    int answer = -1;
    for (int i = 0; i < 50 && answer != 0; i++) {
        answer = shell("%s true 2>%s/ssh.err", ssh, folder);
        if (answer != 0 && waitpid(server, NULL, WNOHANG) == server)
            break;
        if (answer != 0)
            shell("sleep 0.1");
    }
    if (answer != 0) {
        printf("ssh is not tried: the server does not let us in here\n");
        shell("cat %s/ssh.err %s/sshd.log", folder, folder);
    } else {
        snprintf(command, sizeof command, "exec %s -tt 'LC_ALL=C.UTF-8 %s replay %s --at 300'", ssh,
                 getenv("TOWERSCOPE"), record);
        const char *argv[] = {"/bin/sh", "-c", command, NULL};
        struct vt *vt = vt_start(24, 80, argv, NULL);
        look_and_leave(vt, NULL);
        assert_true(vt_wait_exit(vt, 10, NULL));
        assert_true(vt_is_restored(vt));
        vt_end(vt);
    }
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
}

/* ---- multiplexers */

static void in_tmux(void **state) {
    (void)state;
    if (access("/usr/bin/tmux", X_OK)) {
        printf("tmux is not tried: it is not installed\n");
        return;
    }
    char command[2048];
    snprintf(command, sizeof command,
             "tmux -S %s/tmux -f /dev/null new-session '%s replay %s --at 300; echo left; sleep 60'", folder,
             getenv("TOWERSCOPE"), record);
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    struct vt *vt = vt_start(24, 80, argv, NULL);
    look_and_leave(vt, "left");
    shell("tmux -S %s/tmux kill-server", folder);
    assert_true(vt_wait_exit(vt, 10, NULL));
    vt_end(vt);
}

static void in_screen(void **state) {
    (void)state;
    if (access("/usr/bin/screen", X_OK)) {
        printf("screen is not tried: it is not installed\n");
        return;
    }
    char command[2048], home[700];
    snprintf(home, sizeof home, "SCREENDIR=%s/screens", folder);
    shell("mkdir -p -m 700 %s/screens", folder);
    snprintf(
        command, sizeof command,
        "exec screen -U -c /dev/null -S towerscope-test sh -c '%s replay %s --at 300; echo left; sleep 60'",
        getenv("TOWERSCOPE"), record);
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    const char *const env[] = {home, NULL};
    struct vt *vt = vt_start(24, 80, argv, env);
    look_and_leave(vt, "left");
    shell("SCREENDIR=%s/screens screen -S towerscope-test -X quit", folder);
    assert_true(vt_wait_exit(vt, 10, NULL));
    vt_end(vt);
}

static int make_record(void **state) {
    (void)state;
    struct stream_script script = {.towers = 4, .steps = 600, .ended = true};
    snprintf(folder, sizeof folder, "%s", getenv("TEST_TMP"));
    snprintf(record, sizeof record, "%s/record.jsonl", folder);
    return stream_write(&script, record) == STATUS_OK ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_ssh),
        cmocka_unit_test(in_tmux),
        cmocka_unit_test(in_screen),
    };
    return cmocka_run_group_tests(tests, make_record, NULL);
}
