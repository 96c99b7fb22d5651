/**
 * The object with the members of the other one, and no others: a list that has it can show
 * it anew alone.
 */
export function replaced<T extends object>(object: T, other: T): T {
  for (const member of Object.keys(object) as (keyof T)[]) {
    if (!(member in other)) {
      delete object[member];
    }
  }
  return Object.assign(object, other);
}
