/* ipc.h - System V IPC: semaphores, messages, shared memory; Linux's values. */
#pragma once

#include <stdint.h>

#include <abi_md.h>

#define IPC_PRIVATE 0 /* a key */
#define IPC_CREAT   01000
#define IPC_EXCL    02000
#define IPC_NOWAIT  04000

#define IPC_RMID 0
#define IPC_SET  1
#define IPC_STAT 2
#define IPC_INFO 3

struct ipc_perm { /* Linux's ipc64_perm */
	int32_t key;
	uint32_t uid, gid;
	uint32_t cuid, cgid;
	uint32_t mode;
	uint16_t seq;
	uint16_t pad[3];
	uint64_t unused[2];
};

/* ---- semaphores ---- */

#define GETPID       11
#define GETVAL       12
#define GETALL       13
#define GETNCNT      14
#define GETZCNT      15
#define SETVAL       16
#define SETALL       17
#define SEM_STAT     18
#define SEM_INFO     19
#define SEM_STAT_ANY 20

#define SEM_UNDO 0x1000

struct sembuf {
	uint16_t sem_num;
	int16_t sem_op;
	int16_t sem_flg;
};

struct semid_ds { /* Linux's semid64_ds */
	struct ipc_perm perm;
	int64_t otime[SEMID_TIME_WORDS]; /* the first word */
	int64_t ctime[SEMID_TIME_WORDS];
	uint64_t nsems;
	uint64_t unused[2];
};

struct seminfo {
	int32_t semmap, semmni, semmns, semmnu, semmsl, semopm, semume, semusz, semvmx, semaem;
};

/* ---- messages ---- */

#define MSG_STAT     11
#define MSG_INFO     12
#define MSG_STAT_ANY 13

#define MSG_NOERROR 010000
#define MSG_EXCEPT  020000
#define MSG_COPY    040000

struct msqid_ds { /* Linux's msqid64_ds */
	struct ipc_perm perm;
	int64_t stime, rtime, ctime;
	uint64_t cbytes, qnum, qbytes;
	uint32_t lspid, lrpid;
	uint64_t unused[2];
};

struct msginfo {
	int32_t msgpool, msgmap, msgmax, msgmnb, msgmni, msgssz, msgtql;
	uint16_t msgseg;
};

/* ---- shared memory ---- */

#define SHM_LOCK     11
#define SHM_UNLOCK   12
#define SHM_STAT     13
#define SHM_INFO     14
#define SHM_STAT_ANY 15

#define SHM_HUGETLB 04000 /* of shmget() */
#define SHM_RDONLY  010000
#define SHM_RND     020000
#define SHM_REMAP   040000
#define SHM_EXEC    0100000
#define SHM_DEST    01000 /* in the mode: it goes when nobody is attached */
#define SHM_LOCKED  02000 /* in the mode: its pages stay in memory */

struct shmid_ds { /* Linux's shmid64_ds */
	struct ipc_perm perm;
	uint64_t segsz;
	int64_t atime, dtime, ctime;
	uint32_t cpid, lpid;
	uint64_t nattch;
	uint64_t unused[2];
};

struct shminfo { /* Linux's shminfo64 */
	uint64_t shmmax, shmmin, shmmni, shmseg, shmall;
	uint64_t unused[4];
};

struct shm_info {
	int32_t used_ids;
	uint64_t shm_tot, shm_rss, shm_swp;
	uint64_t swap_attempts, swap_successes;
};
