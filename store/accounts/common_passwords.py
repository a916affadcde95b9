#!/usr/bin/env python3
"""Writes common_passwords.txt: the passwords of at least 12 characters that guessers try first.

People make long passwords by a few habits: a favorite word and a number, a word twice, two words, a walk over the
keyboard. Each habit has a cost in bits of a guesser's work. The list has the cheapest combinations.
"""

import itertools
import math
import sys
from pathlib import Path

SHORTEST = 12  # store/accounts/passwords.h refuses shorter passwords
ENTRIES = 10_000

# The most frequent words first.
WORDS = """
password qwerty admin iloveyou welcome letmein passw0rd p@ssw0rd p@ssword monkey dragon football baseball sunshine
princess master shadow superman michael trustno1 batman login starwars administrator qwertyuiop changeme secret
computer internet freedom whatever charlie jordan jennifer hunter soccer killer ashley michelle jessica pepper daniel
summer winter spring autumn january february march april june july august september october november december
monday tuesday wednesday thursday friday saturday sunday google facebook samsung microsoft windows apple android
liverpool chelsea arsenal barcelona manchester realmadrid juventus basketball hockey tennis golf
love lovely loveme mylove lover forever family mother father brother sister babygirl babyboy angel flower butterfly
chocolate cookie banana orange cheese pizza coffee pokemon minecraft naruto mustang ferrari porsche mercedes yamaha
corvette harley thunder lightning diamond golden silver phoenix tigger buster maggie ginger snoopy peanut
hello hello123 welcome1 password1 passwort motdepasse contrasena wachtwoord geheim geheimnis hallo schatz bonjour
user guest root test testing default system server support service manager office company business security access
account database oracle cisco network router public private demo temp temporary backup student teacher school
america canada london england australia germany france russia brazil india mexico newyork chicago boston dallas texas
california florida austin berlin paris
andrew thomas robert matthew joshua anthony william david james john joseph george richard charles christopher
alexander nicholas benjamin samuel patrick jonathan amanda nicole samantha elizabeth stephanie victoria jasmine
hannah rachel lauren melissa andrea natalie vanessa maria anna alex chris martin peter oliver jackson
rainbow unicorn purple yellow turtle dolphin tiger lion eagle panther wolf falcon knight warrior wizard magic
merlin gandalf spiderman ironman captain avengers matrix hacker gamer player winner champion legend hero ninja
samurai soldier sniper hammer rocket spirit heaven jesus christ blessed faith hope peace grace trinity
happy smile friends friend music guitar metallica nirvana eminem rockstar dance dancer singer movie
money lucky success power energy strong nothing something anything everything nobody somebody remember
midnight moonlight sunset sunrise ocean river mountain island garden forest storm
chicken rabbit kitten puppy doggie kitty bulldog cowboys yankees lakers steelers eagles packers raiders patriots
scooter skater surfer fishing hunting racing driver trucker marine army navy airforce
qwerty123 abc123 abcd1234 asdf asdfgh asdfghjkl zxcvbn zxcvbnm qazwsx 1qaz2wsx q1w2e3r4 1q2w3e4r a1b2c3d4
""".split()

PHRASES = """
iloveyousomuch iloveyouforever iloveyoubaby ilovemyself ilovemyfamily ilovemymom ilovemydad ilovemycat ilovemydog
ilovechocolate ilovefootball ilovejesus letmeinplease letmeinnow openthedoor opensesame correcthorsebatterystaple
correcthorse batterystaple thisisapassword thisismypassword thisismypass mypassword mypasswordis mypassword123
mysecretpassword secretpassword supersecret topsecret verysecret notmypassword nopassword passwordispassword
yourpassword newpassword oldpassword adminpassword userpassword rootpassword testpassword defaultpassword
pleasechangeme changemenow changemeplease changethispassword passwordone youshallnotpass maytheforcebewithyou
lukeskywalker darthvader obiwankenobi hansolo chewbacca startrekvoyager enterprise thelordoftherings lordoftherings
harrypotter hermionegranger hogwarts dumbledore gameofthrones winteriscoming whoami whatsup whatthehell
iamtheboss iamthebest iamlegend iamironman iambatman hakunamatata carpediem godisgood godislove jesuschrist
jesusislord jesuslovesme jesusismylord heavenonearth neversaynever nevergiveup dontworrybehappy behappy livelaughlove
hellothere helloworld helloworld123 goodmorning goodnight happybirthday merrychristmas happynewyear iwantyou
iwantmoney showmethemoney makemoney blinkblink onetwothree onetwothreefour abcdefghijkl abcdefghijklm abcdefghijklmn
abcdefghijklmnop abcdefghijklmnopqrstuvwxyz alphabet alphabetsoup babygirl12345 basketballer californication
manchesterunited manchestercity liverpoolfc1 realmadridcf fcbarcelona arsenalfc bayernmunich juventusfc
slipknot666 linkinpark metallica666 ironmaiden blacksabbath deathmetal rockandroll hardrock heavymetal
christopher1 unbelievable extraordinary international professional entertainment understanding relationship
independence communication introduction programming programmer development administrator1 administrators
superadmin supervisor superuser superuser123 sysadmin webmaster postmaster hostmaster mysqlroot rootroot toortoor
adminadmin testtest useruser guestguest passpass passwordpass passadmin adminpass admin123admin letmeinletmein
qwertyqwerty qwerty123456 qwertyuiop123 qwertyuiop12 qwertyuiop1234 qwertyuiopasdf qwertyuiopasdfgh
qwertyuiopasdfghjkl qwertyuiopasdfghjklzxcvbnm mnbvcxzlkjhgfdsapoiuytrewq poiuytrewq123 poiuytrewqlk
asdfghjkl123 asdfghjkl1234 asdfghjklzxcvbnm zxcvbnmasdfghjkl zxcvbnm12345 zxcvbnm123456 1234qwerasdf
1234qwerasdfzxcv qwerasdfzxcv 123qweasdzxc qweasdzxc123 qazwsxedc123 qazwsxedcrfv qazwsxedcrfvtgb 1qaz2wsx3edc
1qaz2wsx3edc4rfv 1qazxsw23edc 1qazxsw23edcvfr4 zaq12wsxcde3 zaq1xsw2cde3 zaq1zaq1zaq1 !qaz2wsx#edc !qaz@wsx#edc
1q2w3e4r5t6y 1q2w3e4r5t6y7u 1q2w3e4r5t6y7u8i 1q2w3e4r5t6y7u8i9o0p q1w2e3r4t5y6 q1w2e3r4t5y6u7 q1w2e3r4t5y6u7i8
a1b2c3d4e5f6 a1s2d3f4g5h6 z1x2c3v4b5n6 1a2b3c4d5e6f 1a2s3d4f5g6h abc123abc123 abcd1234abcd abcabcabcabc
abcdabcdabcd asdfasdfasdf qweqweqweqwe asdasdasdasd qazqazqazqaz qwer1234qwer qwerqwerqwer 1234abcd1234 qwe123qwe123
123qwe123qwe 1q2w3e1q2w3e 1234qwer1234 12qwaszx12qw 12qwaszxerdf azertyuiop123 azertyuiopqs azerty123456 qwertz123456
qwertzuiop123 testing12345 test123test1 hello1234567 abcdefg12345 abcdefgh1234 abcdef123456 abc123456789 abcde1234567
fuckyou12345 fuckyoufuckyou fuckyouall1 motherfucker motherfucker1 sonofabitch bullshit1234 asshole12345
""".split()

# The most frequent suffixes first.
SUFFIXES = """
1 123 12 1234 12345 123456 ! 2 7 123! 1! 11 21 22 23 13 01 69 77 99 88 007 101 111 222 321 333 456 555 666 777 786 789
888 999 000 1234567 12345678 123456789 1234567890 1111 2222 0000 4321 54321 654321 !! !1 @ @1 @12 @123 @1234 #1 1@
abc qwerty love you me man boy girl admin pass password 123123 112233 121212 111111 000000 100 200 500 4ever 4me 4life
forever rules sucks rocks s er ing ?
""".split() + [str(year) for year in [*range(2026, 2005, -1), *range(2005, 1959, -1)]]


def digit_runs():
    for length in range(SHORTEST, 21):
        ascending = "1234567890" * 3
        yield ascending[:length]
        yield "0123456789012345678901234567890"[:length]
        yield "9876543210" * 2 + "98"
        yield ("9876543210" * 3)[:length]
        yield ("0987654321" * 3)[:length]
        for size in range(1, 7):
            for piece in {ascending[:size], *(str(digit) * size for digit in range(10))}:
                yield (piece * length)[:length]
    for piece in "12 13 21 23 69 10 01 20 99 007 101 110 123 321 147 159 258 357 369 789 911 1212 1234 4321 1122 1221 123321 " \
                 "112233 147258 159357 654321 123654 102030 010203 121314 131313 142536 135790 246810".split():
        for times in range(2, 7):
            yield piece * times
    yield from ("112233445566", "11223344556677", "1122334455667788", "112233445566778899", "111222333444",
                "111222333444555", "123456789123", "1234567891234", "12345678912345", "123456123456", "1234512345",
                "12345678901234", "123456789987", "123456654321", "1234567887654321", "147258369147", "147258369123",
                "314159265358", "3141592653589", "271828182845", "112358132134", "101010101010", "121212121212",
                "102030405060", "010203040506", "13579246810", "135792468013", "246813579024", "741852963741",
                "789456123000", "789456123789", "159753159753", "147896325147", "123698745123", "192837465019")


def spellings(word):
    """Yields (spelling of the word, its cost)."""
    yield word, 0
    swapped = word.replace("a", "@").replace("o", "0")
    if swapped != word:
        yield swapped, 4
    swapped = word.replace("e", "3").replace("o", "0").replace("i", "1")
    if swapped != word:
        yield swapped, 5


def candidates():
    """Yields (password, cost)."""
    for text in digit_runs():
        yield text, 1.0
    for text in PHRASES:
        yield text, 2.0
        for rank, suffix in enumerate(SUFFIXES[:12]):
            yield text + suffix, 9 + math.log2(rank + 1)
    ranked = [(word, math.log2(rank + 2)) for rank, word in enumerate(WORDS)]
    for word, cost in ranked:
        yield word, cost
        for times in (2, 3, 4):
            yield word * times, cost + times
        for spelling, more in spellings(word):
            for rank, suffix in enumerate(SUFFIXES):
                behind = cost + more + math.log2(rank + 1)
                yield spelling + suffix, behind + 1
                if suffix[0].isdigit():
                    yield suffix + spelling, behind + 5
                    yield f"{spelling}{suffix}!", behind + 5
                    yield f"{spelling}@{suffix}", behind + 5
    for (first, cost), (second, more) in itertools.permutations(ranked[:160], 2):
        yield first + second, cost + more + 2
    for word, cost in ranked:
        yield "iloveyou" + word, cost + 3
        yield "ilove" + word, cost + 3
        yield "my" + word, cost + 5
        yield "the" + word, cost + 5


def main():
    cheapest = {}
    for text, cost in candidates():
        if len(text) >= SHORTEST:
            cheapest[text] = min(cost, cheapest.get(text, cost))
    chosen = sorted(cheapest, key=lambda text: (cheapest[text], text))[:ENTRIES]
    if len(chosen) < ENTRIES:
        sys.exit(f"only {len(chosen)} passwords")
    file = Path(__file__).with_suffix(".txt")
    file.write_text("".join(f"{text}\n" for text in sorted(chosen)), encoding="ascii")


if __name__ == "__main__":
    main()
