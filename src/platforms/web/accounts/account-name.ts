/** The form of the names of accounts. Small letters alone, so that a name is the same however it is typed. */
export const accountName = /^[a-z0-9][a-z0-9._-]{0,31}$/;
