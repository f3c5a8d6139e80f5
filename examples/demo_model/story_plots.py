# SPDX-License-Identifier: MIT
"""The grammar of the stories: openings, plots and endings. The notation is explained in stories.py."""
import story_words as w

FRESH = {"sad": w.SAD, "glad": w.GLAD, "trait": w.TRAITS, "color": w.COLORS, "animal": w.ANIMALS, "name": w.PETS}


def fixed(source, *names):
    return {name: {"from": source, "names": names} for name in names}


FIXED = {
    **fixed(["@G", "@his @P", "@his friend @F"], "giver"),
    **fixed([f"{c} {t}" for c in w.COLORS for t in w.TOYS], "toy"), **fixed(w.TOYS, "thing"),
    **fixed(w.HOMES, "home"), **fixed(w.LOVES, "love"), **fixed(w.SPOTS, "spot"), **fixed(w.FOODS, "food"),
    **fixed(w.DRINKS, "drink"), **fixed(w.FLOWERS, "plant"), **fixed(w.BUILDS, "build"), **fixed(w.PARTS, "part"),
    **fixed(w.GIFTS, "gift"), **fixed(w.BREAKS, "brk"), **fixed(w.INDOORS, "indoor"), **fixed(w.OUTINGS, "outing"),
    **fixed(w.DREAMS, "dream"), **fixed(w.SMALL, "small"), **fixed(w.SKILLS, "skill", "skilling", "skilled"),
    **fixed(w.NOISES, "noise", "noisewas"), **fixed(w.TRAPS, "trap", "untrap"), **fixed(w.WEATHERS, "weather", "sky"),
    **fixed(w.STORMS, "storm", "stormcame"), **fixed(w.WISHES, "wish", "wishgone"), **fixed(w.TRAITS, "trt"),
}

MACROS = {
    "meal": "(a @food|cake and cookies|apples and pears|bread and cheese|soup and bread)",
    "said": "(said|said|said|said|called|cried)",
    "replied": "(said|replied|answered)",
    "hero": "(@H|@H|@H|the (little|young|@trt) @hk)",
    "walked": "(walked|ran|went|hurried|skipped)",
    "wassad": "(@H was (very |so |)@sad.|@H felt (very |so |)@sad.|@H began to cry.|A tear rolled down @his face.)",
    "wasglad": "(@H was (very |so |)@glad.|@H felt (very |so |)@glad.|@H smiled a big smile.|@H jumped for "
               "joy.|@H laughed.)",
    "bothglad": "(They were (both |very |so |)@glad.|They both laughed.|They smiled at each other.|They hugged "
                "each other.|"
                "They danced for joy.)",
    "thanks": '("Thank you!" @said @H.|"Thank you, @F!" @said @H.|"You are a (good|true|great|kind) '
              'friend," @said @H.)',
    "day": "(one day|one day|one @weather day|one morning|one @weather morning|one afternoon)",
    "yes": "(yes|of course|sure|oh yes|all right)",
}

OPENINGS = [
    "Once upon a time, there was a @trt @hk named @H. @H lived in a @home [@inplace]. @He loved @love.",
    "Once upon a time, there was a @trt @hk. @His name was @H. @H (liked|loved) @love.",
    "Once upon a time, a @hk named @H lived in a @home with @his @P. [@H was @trt and @trait.] "
    "(Most of all|More than anything), @he (liked|loved) @love.",
    "Once upon a time, there lived a @hk who loved @love. (Everyone called @him @H.|The name of the @hk was @H.)",
    "Once there was a @trt @hk called @H. @He had a good friend, a @fk named @F.",
    "Once, a long time ago, a @trt @hk named @H lived near @place. [@H was never @sad.]",
    "One day, a @trt @hk named @H was @inplace. [@sky.] [@H (liked|loved) @love.]",
    'One (day|morning), @H the @hk woke up early. @sky. ["What a @weather day!" @said @he.]',
    "There was a @trt @hk named @H. @H lived [in a @home] with @his @P. [@He loved @love.]",
    "There was once a @hk who was very @trt. @His name was @H. @He had a @home @inplace.",
    "There were two friends, @H and @F. @H was a @hk, and @F was a @fk. They (met|played together) every day.",
    "In a @home @inplace, there lived a @trt @hk named @H. [@H and @his @P were very happy there.]",
    "Long ago, @inplace, a @trt @hk named @H lived (all alone|with @his family|with @his @P|with many friends). "
    "[@He loved @love.]",
    "@H was a @trt @hk. @He (liked|loved) @love. [@He also loved @love2.]",
    "@H and @F were best friends. [@H was a @hk.] [@F was a @fk.] They (liked|loved) @love.",
    "It was a @weather day. @sky. A @trt @hk named @H was @inplace.",
    "Far away, @inplace, lived a @hk named @H. @H was (very|a little|always) @trt. [@He loved @love.]",
    "A @trt @hk named @H lived in a @home. [@Inplace, everybody knew @H.] (@H had a friend named @F.|@He loved "
    "@love.)",
    "This is the story of @H, a @trt @hk who loved @love. [@H lived @inplace.]",
    "Every day, a @hk named @H went for a walk. @He was @trt, and @he loved @love.",
    "Do you know @H? @H is a @trt @hk, and this is what happened @inplace.",
]
# Openings of a hero without a name ("the fox"), and openings that do not say who the hero is.
NAMELESS = [
    "Once upon a time, there was a @trt @hk (who loved @love|who lived in a @home|@inplace). [@He was very @trait.]",
    "Once there was a @hk who lived in a @home. [Every morning, @he went to @place.]",
    "There was a @trt @hk. [@He (liked|loved) @love.]", "One day, a @trt @hk was @inplace. [@sky.]",
    "A @trt @hk lived @inplace (all alone|with @his @P). [@He (liked|loved) @love.]",
    "The @trt @hk (was @trait|liked @love|lived in a @home|sat @inplace).", "A @hk sat @inplace. [@sky.]",
    "In a land far away, there lived a @trt @hk.", "It was a @weather day. A @hk (walked|sat|was|played) @inplace.",
]
LOOSE = [
    "@H was (happy|bored|@trt|busy|awake early).", "@sky. @H (sat|was|played) @inplace.", "@H lived in a @home.",
    '"Good morning, @H!" said @his @P.', "@H and @his @P were @inplace.", "@H had a friend named @F.",
    '@H sat at the table and ate @meal. ["It is so good!" said @H.]',
    "@H had a @toy. [It was (new|old|very pretty).]",
    "@H (sat|stood) by the (door|window|gate|fire) and (waited for @F|looked at the sky|thought of @dream|looked "
    "out).",
    "@H was afraid of (the dark|the water|big dogs|thunder|spiders|the wind|monsters). [But @he did not tell "
    "anyone.]",
    "@H wanted to (see|find|visit) (the sea|a real @animal|the moon|the king|the top of the mountain|a rainbow).",
    '"(I am so hungry|I am so tired|I am bored|What a @weather day|I want to play|Come here|Look at me)," @said '
    "@H.",
    "@H (was looking for|looked for|washed|cleaned|painted) @his @color @thing. [It took a long time.]",
    "@H and @his @P (made @meal|washed the dishes|were in the kitchen|cleaned the house|went for a walk|were at "
    "home).",
    "@H had a @color @animal (called @name|that could sing|that liked to sleep|that ate only @meal).",
    "When @H was (little|young|five years old), @he lived @inplace.", "@H was on the way to @place. [@sky.]",
    "@H (heard|saw) something strange @inplace. [It was only a @animal.]", "@H got a letter from @F. [It was short.]",
    "Last (summer|winter|week|spring), @H went to @place with @his @P.", "@H looked out of the window. @sky.",
    '@H did not want to (go to bed|go to school|eat the soup|wash|get up|clean the room). ["No!" @said @H.]',
    "@H (could|could not) @skill9.", "@H and @F (were playing|played) with a @color @thing.",
    "@H (found|bought|got|lost|broke) a @color @thing @inplace.",
    "@H ran (down the road|up the hill|home|to @place).",
    "@H was (tired|sleepy|hungry|thirsty|cold|alone) and wanted (to go home|to rest|some @drink|a @food|a hug).",
    "@His @P made @meal (for breakfast|for lunch|for dinner), and @H was very hungry.",
    "@H woke up. It was still dark.",
]

ENDINGS = [
    "@H (learned|knew now|understood) that @lesson.", "From that day on, @H (knew|remembered) that @lesson.",
    "And @H (never forgot|always remembered) that @lesson. [The end.]", "They all lived happily ever after.",
    "That night, @H fell asleep with a smile. [@He dreamed of @dream.]",
    "The end.", "What a (@weather|lovely|wonderful|good) day!",
    "And from then on, @H and @F were the best of friends.", "And so @H went home and told @his @P all about it. "
    '("I am proud of you," said @his @P.|@His @P said, "Now you know that @lesson."|@His @P gave @him a big '
    "hug.)",
    '"Remember," said @G, "@lesson."', 'In the evening, @H (sat|lay) in bed and thought, "@lesson."', "",
    "@H was @glad, and @F was @glad too. [The end.]", "After that, @H was never @sad again. [The end.]",
    "@F and @H went home together[, singing all the way]. [They knew that @lesson.]",
]

PLOTS = {
    "lost thing": {"owns": True, "lesson": "careful", "beats": [
        '@H had a @toy. (It was @his favorite thing|@He took it everywhere|It was a gift from @his @P|@He loved it '
        'very much). (But @day|@Day|Then, @day), @he could not find it. ("Where is my @toy?" @said @H.|"Oh no! My '
        '@toy is gone!" @said @H.) @wassad',
        '@H looked @spot1, but it was not there. [@He looked @spot2, but there was only a @color @thing.] ["Have you '
        'seen my @toy?" @he asked @his @P. "No, I have not," @replied @his @P. ["Keep looking!"]]',
        '(Then @F the @fk came by.|@H asked @his friend @F for help.|@F heard @H and came to help.) "(Do not '
        'worry|Do not cry|Do not be sad), @H. (I will help you|We will find it|Let us look together)," @said @F. '
        'They looked (everywhere|@inplace|high and low|all over @place).',
        '(At last|Finally|After a long time), (@F looked|they looked|@H looked) @spot3. (There it was!|The @toy was '
        'there!|"I see it!" @said @F.) @wasglad @thanks [@H held the @toy (tight|in both arms)[ and did not let '
        'go].]',
        "[(After that|From then on), @H always put the @toy (in a safe place|@spot4).]"]},
    "new friend": {"meets": True, "lesson": "friend", "beats": [
        "But @H was (@sad|lonely|bored), because @he had (nobody to play with|no friends|no one to talk to). @Day, "
        "@he @walked to @place. There @he (saw|met) a @fk [who sat all alone]. (The @fk looked @sad.|The @fk was "
        "very shy.|They had never met before.)",
        '"(Hello|Hi|Good morning)! (My name is @H|I am @H). (What is your name?|Who are you?)" @said @hero. "(I am '
        '@F|My name is @F)," @replied the @fk. ["I am new here."] ["(Do you want to|Would you like to|Will you) play '
        'with me?" asked @H. "@Yes!" @replied @F.]',
        '@H had a @food. @He gave half of it to @F. ["(This is good|It is very good|I like it)!" @said @F.] (They '
        'played all day.|They @indoor.|They ran and jumped @inplace.|@F showed @H a secret place.) @bothglad',
        '[Some of the others laughed. "You two can not be friends!" they said. But @H did not (care|listen). "@F is '
        'my friend," @he said.] (When the sun went down|In the evening|When it was time to go), @F said, "(Will you '
        'come back tomorrow?|Can we play again?|I had a good day.)" "@Yes," @replied @H.']},
    "storm": {"lesson": "help", "beats": [
        "@Day, @H and @F went to @place for a @outing. They had a @food and some @drink with them. [@sky.] @bothglad",
        '(But then|Suddenly|All at once), something changed. @stormcame. ("Oh no!" @said @F. "What can we do?"|"We '
        'must go!" @said @H.|"Our @outing is over," @said @F.) [@F was @sad. "I do not like the @storm," @fhe said.]',
        '"(Come with me|Follow me|Quick)! I know a (safe|dry|warm) place," @said (@H|@G). They @walked to (a cave|an '
        'old barn|a @home|a big tree|the @home of @F). (Inside, it was warm.|It was dry there.|They were safe.)',
        '(While they waited|Inside|Together), they @indoor. [@F was not @sad any more.] [They drank the @drink and '
        'ate the @food.] ["This is even better than a @outing!" @said @F.]',
        "(After a while|At last|An hour later), the @storm (was over|stopped). (There was a rainbow in the sky.|The "
        "sun came out again.|The world was clean and bright.) @bothglad"]},
    "skill": {"lesson": "try", "beats": [
        '@H wanted to learn to @skill. @His friend @F could @skill very well. ("It looks so easy," @said @H.|"I want '
        'to do that too," @said @H.|"Can you teach me?" asked @H.)',
        '@Day, @H tried [it @inplace]. But it was hard. (@He fell down.|It did not work.|Everything went wrong.|@He '
        'could not do it.) [@He tried again, and again it went wrong.] @wassad "(I can not do it|I will never learn '
        'to @skill|It is too hard)," @said @he.',
        '(@F|@His @P|@G) said, "(Do not give up|Try again|Nobody can do it the first time|It takes time), @H. (I '
        'will help you.|I was bad at @skilling too.|Do it slowly.|Look how I do it.)" [So @H took a deep breath.]',
        '@H tried (again the next day|every day|again and again|once more). [Each time it went a little better.] '
        '(And then|One day|At last|Finally), @he did it! @H @skilled. ("Look at me!" @said @H.|"I can @skill!" @said '
        '@H.|"You did it!" @said @F.) @wasglad']},
    "sharing": {"lesson": "share", "beats": [
        '@Day, @H and @F found a @toy @inplace. "(It is mine|I saw it first|I want it)!" @said @H. "No, (it is '
        'mine|I saw it first|I want it)!" @said @F. (They pulled and pulled.|They shouted at each other.|They were '
        'both very cross.)',
        '[Then the @toy (fell into the water|broke in two|fell down).] @G came and asked, "(What is the matter?|Why '
        'are you so loud?|What is going on?)" They told @ghim about the @toy.',
        '"(You can take turns|Why do you not share it?|You can both play with it)," @said @G. (@H looked at @F.|@H '
        'thought about it.|They thought about it.) "(I am sorry|Sorry), @F. (You can have it first|Let us share)," '
        '@said @H. ["I am sorry too," @replied @F.]',
        "So they shared the @toy. (First @F played with it, and then @H.|They played with it together all day.|Each "
        "day another one took it home.) [They also shared a @food.] @bothglad"]},
    "rescue": {"lesson": "help", "beats": [
        '@Day, @H @walked (to|through|past) @place. (Suddenly|Then), @he heard a (small|sad|tiny|soft) (voice|cry). '
        '"Help! Help!" It was a (little|baby|tiny) @small. The @small was @trap. [It was very @sad.]',
        '"(Do not worry|Do not be afraid|Wait), little @small! I will help you," @said @H. [@He thought and thought. '
        '"I know what to do," @he said.] [@H called @F, and @F came at once.] @H @untrap. (Now the @small was '
        'safe.|It worked!|The @small was free!)',
        '"(Thank you|Thank you so much), (kind @hk|@H)! (You saved me|I will not forget this)," @said the @small. '
        '(@H gave the @small a @food.|@H took the @small home to its mother.|The @small gave @H a @toy.|They had '
        'some @drink together.)',
        "[(Some days later|The next week|One day), @H was in trouble too. @He was lost @inplace. (But then|And who "
        "came?) the @small came and showed @him the way.] @wasglad"]},
    "gift": {"lesson": "share", "beats": [
        '(Soon it was|Tomorrow was|It was almost|It was) the birthday of (@his @P|@F). @H wanted to give (a '
        'gift|something nice), but @he had no money. "(What can I do?|What can I give?)" @he (asked|thought). ["You '
        'can make something," @said @G.] "I will make a @gift!" @said @H.',
        "@H worked all (day|morning|night). [@He used @color paper and @part.] But (then @he fell, and the @gift "
        "broke|the wind blew it away|the @gift did not look good|a @animal sat on it). @wassad",
        '(@F saw it|@G saw it|A @animal saw it) and said, "(Do not cry|Do not be sad), @H. (You can make a new '
        'one|It is still pretty|A gift from the heart is always good)." So @H (tried again|made a new @gift|put it '
        'back together).',
        '(At the party|The next day|In the evening), @H gave the @gift away. "(This is the best gift of all|I love '
        'it|How lovely|Did you make this?)!" [Everyone clapped.] Then they ate @meal. @wasglad']},
    "truth": {"lesson": "truth", "beats": [
        '@Day, @H played with a @toy in the house. ["Be careful," said @his @P.] (Crash!|Oh no!|Bang!) The @brk fell '
        'down and broke. It was the (favorite|old|best) @brk of @his @P. @H was @sad. ("What will my @P say?"|"What '
        'have I done?") @he thought.',
        '@H (hid the pieces @spot|put the pieces @spot|ran away and hid @spot). (Then|Soon) @his @P came in and '
        'asked, "(Where is the @brk?|Who broke the @brk?|What happened to the @brk?)" ["(It was the cat|I do not '
        'know|Maybe it was the wind)," said @H, but @he felt bad.] [@H could not (eat|sleep|play).]',
        '[@His friend @F said, "You should tell the truth."] (At last|Then|After a while), @H said, "(I broke the '
        '@brk|It was me). I am (so |very |)sorry." @His @P looked at @him and (smiled|nodded). "(Thank you for '
        'telling me|I am glad that you told me the truth|It was only a @brk)."',
        "(Together they fixed the @brk with glue.|They cleaned it up together.|@H saved money for a new @brk.|They "
        "made a new @brk.) [@His @P gave @him a (hug|@food).] @wasglad"]},
    "night noise": {"lesson": "brave", "beats": [
        'One night, @H was in bed. (It was dark.|The moon was bright.|The house was quiet.) Then @he heard @noise. '
        '"(What is that?|Who is there?|Is it a monster?)" @he (said|thought|whispered). @H (hid under the '
        'blanket|was afraid|held @his @toy tight).',
        '[@He called @F, who slept in the same room. "Did you hear that?" "Yes," @said @F.] There it was again, '
        '@noise! "I must be brave," @said @H. @He took a (lamp|candle|light) and @walked to the '
        '(window|door|kitchen|stairs).',
        '@H opened the door (slowly|very slowly|with care). (And what did @he see?|Then @he began to laugh.|There '
        'was no monster.) It was only @noisewas! ("It was only that!" @said @H.|"How silly of me!" @said @H.) '
        '@wasglad',
        '[@His @P came too and gave @him some @drink.] ["You were very brave," said @his @P.] Then @H went back to '
        'bed and slept until the morning.']},
    "lost way": {"lesson": "careful", "beats": [
        '["Do not go too far," said @his @P.] @Day, @H followed a @color (butterfly|bird|balloon|leaf|bee|cat) '
        '(into|past|away from) @place. @He @walked (on and on|far, far away|up and down the hills). When @he '
        'stopped, @he did not know the way. "(Where am I?|I am lost!|How do I get home?)" @said @H. @wassad',
        '[It began to get dark.] (Then @he met|Then @he saw|There came) a @gk. "(Why are you crying?|What is wrong, '
        'little @hk?|Are you lost?)" asked @G. "I can not find my home," @replied @H. "I live in a @home."',
        '"(I know where that is|I can show you the way|Come with me|Do not worry)," @said @G. They @walked past (a '
        'pond|a mill|a big rock|an old tree) and over (a bridge|a hill|a field|a stream). [@G told @him a story on '
        'the way.] [@H was not @sad any more.]',
        '(At last|Soon|Then), they saw the @home. @His @P ran out and hugged @him. "(I was so worried|There you '
        'are|Where were you)!" ["I am sorry," @said @H. "I will stay close next time."] [@G stayed for some @drink.] '
        '@wasglad']},
    "seed": {"lesson": "wait", "beats": [
        '@Day, @giver gave @H a (tiny|small|little|strange) seed. "(Put it in the ground|Plant it) and give it '
        'water," said @giver. @H (dug a hole|made a hole) @inplace and put the seed in.',
        'The next day, @H looked, but (there was nothing|nothing had happened|the ground was bare). "(Why does it '
        'not grow|Where is my plant)?" @said @H. @wassad "(Wait a little|You must wait|Give it time)," @said @F. '
        '["Plants grow slowly."]',
        'So @H gave it water (every day|each morning|when it was dry). [@He sang to it too.] [@F helped @him to keep '
        'the birds away.] (Days went by.|It rained, and the sun came out.|A week went by.) Then a (tiny|little) '
        'green leaf came out of the ground! "(Look|Come and see)!" @said @H.',
        'It grew and grew. (In the summer|Soon|At last), it was a (big|beautiful|fine) @plant. [Everyone came to see '
        'it.] (@F was amazed.|"It was good to wait," @said @H.) @wasglad']},
    "race": {"lesson": "enough", "beats": [
        '@Day, there was a (big |great |)(race|contest) @inplace. @F the @fk said, "I am the (best|fastest) of all! '
        '(Nobody can beat me|You will lose, @H)." @H did not feel (fast|strong), but @he said, "I will do my best."',
        '"One, two, three, go!" called @G. @F ran (ahead|very fast|like the wind). @H was (slow|last|far behind), '
        'but @he did not stop. ["Go, @H, go!" called @his @P.]',
        "(Then @F stopped to eat a @food.|Then @F stopped to rest and fell asleep.|Then @F fell and hurt a leg.|Then "
        "@F took the wrong path.) (@H @walked on, step by step.|@H stopped and helped @F to get up.|@H did not look "
        "back.)",
        '(@H came in first!|They came in together, side by side!|@H was not first, but everybody clapped.) @G gave '
        '@him a (gold medal|@food|@toy). "(I am sorry that I laughed at you|You did well|Good race), @H," @said @F. '
        '@wasglad']},
    "wish": {"lesson": "enough", "beats": [
        '@Day, @H found a (magic|strange|shiny) @thing @spot. (When @he touched it|When @he picked it up), (a voice '
        'said|a fairy came out and said|it began to talk), "(I can give you one wish|You have one wish|Make a '
        'wish)!" @H thought (hard|for a long time). "I wish @wish!" @said @he.',
        '(Puff!|Whoosh!|There was a flash of @color light.|At once, it came true.) At first @H (was '
        '@glad|laughed|liked it). But then @he @wishgone. @wassad ["This is not fun," @said @he.]',
        '@H @walked to @G and told @ghim (everything|about the wish|about the magic @thing). "(Be careful what you '
        'wish for|Some wishes are not good)," @said @G. "(Hold the @thing and say sorry|Give the @thing back|Put the '
        '@thing back where it was)." @H did so, and the magic stopped.',
        'Everything was (as before|the same again|fine again). ("I do not need a wish," @said @H. "I have @F and my '
        '@P."|"I like things the way they are," @said @H.) @wasglad']},
    "bedtime": {"lesson": "brave", "beats": [
        'It was (late|night|time for bed), but @H could not sleep. (@He turned left and right.|@He looked at the '
        'moon.|@He was not tired at all.) "I can not sleep," @he said to @his @P.',
        '"(Count some sheep|Drink some @drink|Think of something nice|Close your eyes)," said @his @P. @H tried it, '
        'but it did not help. [@He counted (ten|twenty|a hundred) sheep.] [Then @he went to the window and saw @F. '
        '"I can not sleep either," @said @F.]',
        "(So @his @P told @him a story about @dream.|Then @G sang a soft song about @dream.|So @H thought about "
        "@dream.) @H (listened|smiled|lay still). [It was warm and soft in bed.] [The stars came out, one by one.]",
        '(Slowly|Soon|Little by little), @his eyes closed. ("Good night, @H," said @his @P.|"Sleep well," said @his '
        '@P.) [@H dreamed of @dream2.] The next morning, @H (felt fine|woke up happy|was full of energy).']},
    "building": {"lesson": "try", "beats": [
        '@Day, @H had an idea. "(Let us build|I want to build|We can build) a @build!" @he said to @F. They '
        '(got|found|collected) some @part1 and some @part2 [@inplace]. (They worked all day.|It was hard work.|@F '
        'held the @part1, and @H did the rest.)',
        'But when the @build was (almost done|half done|finished), (it fell down|the wind knocked it over|a @animal '
        'ran into it|it broke). ("Oh no!" @said @F. "Our @build!"|"All our work is gone," @said @F.) @wassad',
        '(@G came by and said|Then @H said|@his @P said), "(We can do it again|It needs to be stronger|Use more '
        '@part1|Start at the bottom|Never give up)." So they (started again|built it again|went to work once more). '
        '[This time they took their time.] [They used @part3 as well.]',
        '(Now|At last|In the evening), the @build was (strong|big and strong|ready|beautiful). (It did not '
        'fall.|Everyone wanted to see it.|They sat in front of it and ate @meal.) "We did it (together|at last)!" '
        '@said @F. @bothglad']},
    "hungry": {"meets": True, "lesson": "share", "beats": [
        '@Day, @H had a big @food. @He wanted to eat it all. ["(Yum|Mmm)!" @said @H.] @He sat down @inplace. (Just '
        'then|Then), a @fk named @F came by. "I am so hungry," @said @F. ["I have not eaten all day."]',
        '@H looked at the @food. (It was not very big.|It smelled so good.|@He was hungry too.) [At first @he wanted '
        'to say no.] (But @F looked so @sad.|Then @he thought of what @his @P always said.) "(Here|You can have '
        'half|Come and sit with me|Let us eat it together)," @said @H.',
        'They ate the @food together. (It tasted better than ever.|Not a crumb was left.|@F ate very fast.) "(Thank '
        'you|You are kind), @H," @said @F. "(Now I want to give you something too|Come with me)." @F showed @him (a '
        'tree full of plums|a bush full of berries|a @toy|a secret garden).',
        "[(The next day|After that), they met again, and @F brought a @food2 for both of them.] @bothglad"]},
    "sick": {"lesson": "help", "beats": [
        '@Day, @H wanted to play with @F. But @F did not come. @H @walked to the house of @F. @F was in bed. "(I am '
        'sick|I do not feel well|My head hurts)," @said @F. (Poor @F!|@F looked pale.|@Fhe looked very @sad.)',
        '"(I will help you|I will take care of you|Stay in bed)," @said @H. @He brought @fhim some @drink and a '
        '@food. [@He also brought a @toy.] [Then @H went to @G and asked what to do. "Sleep and warm soup are best," '
        '@said @G.]',
        "@H (read a story to @F. It was about @dream.|sang for @F.|sat by the bed.|told funny jokes.) [@F smiled for "
        "the first time.] (The next day|After three days|Soon), @F felt (better|much better|well again).",
        '"(You are the best friend in the world|You made me well|Thank you for your help), @H," @said @F. They '
        '@walked to @place and played. @bothglad']},
    "ordinary day": {"owns": True, "lesson": "friend", "beats": [
        'One (day|morning), @H and @his @P (were|took a walk|spent the day) @inplace. [@sky.] They saw a @color '
        '@animal, a @color @animal and (two|three|many) birds. ["Look!" @said @H. "The @animal is so @trait!"]',
        '[First they had some @drink.] Then @H played with @his @toy. [@F the @fk came and played too.] They (threw '
        'it up high|hid it @spot|took turns with it|showed it to everyone). "(This is fun|I like this game|Again, '
        'again)!" @said @H.',
        "At noon, they ate @meal. [@His @P told a funny story about @dream.] [A @small came close, and @H gave it a "
        "crumb.] Then they (sat in the shade|went for a swim|picked flowers|looked at the clouds). One cloud looked "
        "like a @thing.",
        'When the sun went down, they @walked home. "(Can we come back tomorrow?|That was a good day|I am tired)," '
        '@said @H. @wasglad']},
}
